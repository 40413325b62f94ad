"""The lessons that take long, checked as the others are."""
import lesson_test
import support


class LongLesson(support.Case):
    texts_of = lesson_test.Lesson.texts_of
    check = lesson_test.Lesson.check
    check_pointers = lesson_test.Lesson.check_pointers

    def test_lessons_in_both_languages(self):
        self.check(sorted(lesson_test.LONG))


del lesson_test.Lesson  # the everyday test's

if __name__ == "__main__":
    support.main()
