#include "data/h5_file.h"
#include "tests/support/temporary_folder.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <ctime>

using namespace minillm;
using namespace minillm::test;

TEST_CASE("names of a group are listed in one walk") {
  const H5Format format = {.name = "minillm-test", .version = 1, .remedy = "make it again"};
  TemporaryFolder folder(fast_temporary_parent());
  constexpr int count = 8000;
  const std::clock_t start = std::clock();  // processor time, whoever else uses the machine
  {
    H5Writer writer(folder / "a.h5", format);
    for (int64_t i = 0; i < count; ++i) {
      writer.write(fmt::format("/weights/{:06}", count - 1 - i), &i, Shape{});
    }
    writer.commit();
  }
  const std::clock_t written = std::clock();
  const H5Reader reader(folder / "a.h5", format);
  const std::vector<std::string> names = reader.list("/weights");
  const std::clock_t listed = std::clock();
  CHECK(names.size() == count);
  CHECK(names.front() == "000000");
  CHECK(std::is_sorted(names.begin(), names.end()));
  CHECK(listed - written < written - start);  // a walk for every name takes many times what writing takes
}
