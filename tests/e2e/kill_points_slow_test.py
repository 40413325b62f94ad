"""kill -9 before and after system calls of a whole run, at more moments."""
import kill_points_test
import support


class ManyKillPoints(kill_points_test.KillPoints):
    MOST = 60


del kill_points_test.KillPoints  # its few moments are among these

if __name__ == "__main__":
    support.main()
