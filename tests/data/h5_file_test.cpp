#include "data/h5_file.h"

#include "core/atomic_file.h"
#include "data/sha256.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fstream>
#include <thread>

using namespace minillm;
using namespace minillm::test;

namespace {

const H5Format kind{"minillm-test", 1, "make it again"};

void write_sample(const std::string& path, float first = 1.5F) {
  H5Writer writer(path, kind);
  const std::vector<float> floats = {first, -2.25F, 3e-39F, 4, 5, 6};
  const std::vector<double> doubles = {0.1, 1e300};
  const std::vector<int32_t> ints = {-1, INT32_MAX, INT32_MIN};
  writer.write("/weights/model.norm.weight", floats.data(), {2, 3});
  writer.write("/weights/b", doubles.data(), {2});
  writer.write("/ints", ints.data(), {3});
  writer.write("/nothing", ints.data(), {0});
  writer.write("/scalar", doubles.data(), {});
  writer.write_bytes("/text", std::string("a\0b\xff", 4));
  writer.set_attribute("/", "count", int64_t{-7});
  writer.set_attribute("/", "ratio", 0.1);
  writer.set_attribute("/weights/b", "note", "模型 é");
  writer.set_attribute("/", "empty", "");
  H5Stream<uint16_t> small(writer, "/train");
  H5Stream<uint32_t> large(writer, "/val");
  for (uint32_t i = 0; i < 300000; ++i) {
    const uint16_t token = static_cast<uint16_t>(i % 65536);
    small.append(&token, 1);
    const uint32_t wide = i * 7;
    large.append(&wide, 1);
  }
  small.finish();
  large.finish();
  writer.commit();
}

std::string h5_refusal(const std::string& path, const H5Format& format = kind) {
  return message_of(Fault::input, [&] { H5Reader reader(path, format); });
}

/// Runs `body` in a child process as the user nobody (root ignores permissions); returns its exit status.
template <class Body>
int run_without_privileges(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && seteuid(65534) != 0) {
      _exit(90);
    }
    try {
      body();
    } catch (const Error& error) {
      _exit(static_cast<int>(error.fault()));
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

TEST_CASE("SHA-256 of the standard's examples") {
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("what is written is read back") {
  const TemporaryFolder folder;
  const std::string path = folder / "模型 é\n.h5";
  write_sample(path);
  const H5Reader reader(path, kind);
  const std::vector<float> floats = reader.read<float>("/weights/model.norm.weight", 2);
  CHECK(floats == std::vector<float>{1.5F, -2.25F, 3e-39F, 4, 5, 6});
  CHECK(reader.shape("/weights/model.norm.weight") == Shape{2, 3});
  CHECK(reader.read<double>("/weights/b") == std::vector<double>{0.1, 1e300});
  CHECK(reader.read<int32_t>("/ints") == std::vector<int32_t>{-1, INT32_MAX, INT32_MIN});
  CHECK(reader.read<int32_t>("/nothing").empty());
  CHECK(reader.read<double>("/scalar", 0) == std::vector<double>{0.1});
  CHECK(reader.read_bytes("/text") == std::string("a\0b\xff", 4));
  CHECK(reader.int_attribute("/", "count") == -7);
  CHECK(reader.double_attribute("/", "ratio") == 0.1);
  CHECK(reader.string_attribute("/weights/b", "note") == "模型 é");
  CHECK(reader.string_attribute("/", "empty").empty());
  CHECK(reader.has_attribute("/", "count"));
  CHECK_FALSE(reader.has_attribute("/", "other"));
  CHECK(reader.list("/weights") == std::vector<std::string>{"b", "model.norm.weight"});
  CHECK(reader.list("/absent").empty());
  CHECK(reader.has("/weights/b"));
  CHECK_FALSE(reader.has("/absent/b"));
  const std::vector<uint16_t> small = reader.read<uint16_t>("/train");
  const std::vector<uint32_t> large = reader.read<uint32_t>("/val");
  REQUIRE(small.size() == 300000);
  CHECK(small[65537] == 1);
  CHECK(small.back() == 299999 % 65536);
  CHECK(large.back() == 299999u * 7);
  Buffer tensor({2, 3}, DType::float32);
  reader.read("/weights/model.norm.weight", tensor.tensor());
  CHECK(tensor.tensor().at(1) == -2.25);
}

TEST_CASE("the user block is readable text and hashes the rest; the same contents give the same bytes") {
  const TemporaryFolder folder;
  write_sample(folder / "a.h5");
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // HDF5 keeps times in seconds
  write_sample(folder / "b.h5");
  const std::string bytes = read_file(folder / "a.h5");
  CHECK(bytes == read_file(folder / "b.h5"));
  CHECK(folder.names() == std::vector<std::string>{"a.h5", "b.h5"});
  const std::string block = bytes.substr(0, 512);
  CHECK(block.find('\0') == std::string::npos);
  CHECK_CONTAINS(block, "format minillm-test 1\n");
  CHECK_CONTAINS(block, sha256_hex(bytes.substr(512)));
  CHECK(bytes.substr(512, 4) == "\x89HDF");
}

TEST_CASE("every cut is refused with the bytes it has and should have") {
  const TemporaryFolder folder;
  write_sample(folder / "a.h5");
  const std::string bytes = read_file(folder / "a.h5");
  std::vector<size_t> cuts = {40, 100, 511, 512, bytes.size() - 1};
  for (size_t part = 1; part < 16; ++part) {
    cuts.push_back(bytes.size() * part / 16);
  }
  for (size_t cut : cuts) {
    write_file(folder / "cut.h5", bytes.substr(0, cut));
    const std::string message = h5_refusal(folder / "cut.h5");
    CHECK_CONTAINS(message, fmt::format("cut.h5 is incomplete: {} of {} bytes; make it again", cut, bytes.size()));
  }
  write_file(folder / "cut.h5", bytes.substr(0, 20));
  CHECK_CONTAINS(h5_refusal(folder / "cut.h5"), "is incomplete: 20 bytes, less than its 512-byte header");
  write_file(folder / "cut.h5", bytes + "x");
  CHECK_CONTAINS(h5_refusal(folder / "cut.h5"), "was damaged");
}

TEST_CASE("one flipped bit anywhere is found") {
  const TemporaryFolder folder;
  write_sample(folder / "a.h5");
  const std::string bytes = read_file(folder / "a.h5");
  write_file(folder / "bad.h5", bytes);
  std::fstream file(folder / "bad.h5", std::ios::binary | std::ios::in | std::ios::out);
  const auto put = [&](size_t at, char byte) { file.seekp(static_cast<std::streamoff>(at)).put(byte).flush(); };
  const auto message_with = [&](size_t at, size_t bit) {
    put(at, static_cast<char>(bytes[at] ^ (1 << bit)));
    const std::string message = h5_refusal(folder / "bad.h5");
    put(at, bytes[at]);
    REQUIRE(file.good());
    return message;
  };
  for (size_t bit = 0; bit < 8 * 512; ++bit) {
    CAPTURE(bit);
    message_with(bit / 8, bit % 8);  // every one of the user block, blanks too
  }
  for (size_t part = 0; part < 16; ++part) {
    const size_t at = std::max<size_t>(512, bytes.size() * part / 16);
    CHECK_CONTAINS(message_with(at, part % 8), "bad.h5 was damaged: checksum differs; make it again");
  }
}

TEST_CASE("foreign files are named for what they are") {
  const TemporaryFolder folder;
  const auto refused_as = [&](const std::string& bytes) {
    write_file(folder / "x.h5", bytes);
    return h5_refusal(folder / "x.h5");
  };
  write_sample(folder / "a.h5");
  CHECK_CONTAINS(refused_as("Once upon a time\n"), "is not a minillm file: looks like text");
  CHECK_CONTAINS(refused_as(""), "is not a minillm file: looks like an empty file");
  CHECK_CONTAINS(refused_as(read_file(folder / "a.h5").substr(512)), "looks like plain HDF5");
  CHECK_CONTAINS(refused_as(std::string("\x02\0\0\0\0\0\0\0{}", 10)), "looks like safetensors");
  CHECK_CONTAINS(refused_as(std::string("PK\x03\x04\0\0", 6)), "looks like a zip archive");
  const auto begins = [](int32_t number) { return std::string(reinterpret_cast<const char*>(&number), 4); };
  CHECK_CONTAINS(refused_as(begins(20240326) + "x"), "looks like a GPT-2 model of llm.c");
  CHECK_CONTAINS(refused_as(begins(20240520)), "looks like a token file of llm.c");
  CHECK_CONTAINS(refused_as(begins(20240325)), "looks like unknown binary data");
  CHECK_CONTAINS(refused_as(std::string("\x01\0\x02\0\x03", 5)), "looks like unknown binary data");
  CHECK_CONTAINS(h5_refusal(folder / "a.h5", {"minillm-tokens", 1, ""}),
                 "a.h5 is a minillm-test file, a minillm-tokens file is needed");
  CHECK_CONTAINS(h5_refusal(folder / "missing.h5"), "cannot be opened: No such file or directory");
  CHECK_CONTAINS(h5_refusal(folder.path()), "is a folder");
}

TEST_CASE("a file of a newer version is refused, of an older one read") {
  const TemporaryFolder folder;
  const H5Format newer{"minillm-test", 2, "make it again"};
  { H5Writer(folder / "new.h5", newer).commit(); }
  CHECK_CONTAINS(h5_refusal(folder / "new.h5"), "was written by a newer version of minillm");
  { H5Writer(folder / "old.h5", kind).commit(); }
  CHECK(H5Reader(folder / "old.h5", newer).version() == 1);
}

TEST_CASE("wrong datasets are named with what was found and what is needed") {
  const TemporaryFolder folder;
  write_sample(folder / "a.h5");
  const H5Reader reader(folder / "a.h5", kind);
  const auto message = [&](auto body) { return message_of(Fault::input, body); };
  CHECK_CONTAINS(message([&] { reader.read<float>("/absent/x"); }), "/absent/x: the dataset is missing");
  CHECK_CONTAINS(message([&] { reader.read<float>("/weights"); }), "/weights: is a group; expected a dataset");
  CHECK_CONTAINS(message([&] { reader.read<float>("/weights/b"); }),
                 "/weights/b: has the wrong type; found float64; expected float32");
  CHECK_CONTAINS(message([&] { reader.read<float>("/weights/model.norm.weight"); }),
                 "has the wrong shape; found [2, 3]; expected rank 1");
  const Buffer tensor({3, 2}, DType::float32);
  CHECK_CONTAINS(message([&] { reader.read("/weights/model.norm.weight", tensor.tensor()); }),
                 "has the wrong shape; found [2, 3]; expected [3, 2]");
  CHECK_CONTAINS(message([&] { reader.int_attribute("/", "absent"); }), "the attribute absent is missing");
  CHECK_CONTAINS(message([&] { reader.int_attribute("/", "ratio"); }), "found float64; expected one int64");
  CHECK_CONTAINS(message([&] { reader.string_attribute("/", "count"); }), "expected text");
}

TEST_CASE("an uncommitted or failing writer leaves nothing and keeps the old file") {
  const TemporaryFolder folder;
  write_sample(folder / "a.h5");
  const std::string before = read_file(folder / "a.h5");
  {
    H5Writer writer(folder / "a.h5", kind);
    writer.write_bytes("/x", "half");
    H5Stream<uint16_t> abandoned(writer, "/train");
    CHECK(folder.names().size() == 2);
  }
  CHECK(folder.names() == std::vector<std::string>{"a.h5"});
  CHECK(read_file(folder / "a.h5") == before);
  message_of(Fault::work, [&] {
    H5Writer writer(folder / "a.h5", kind);
    writer.write_bytes("/x", "one");
    writer.write_bytes("/x", "two");
  });
  CHECK(folder.names() == std::vector<std::string>{"a.h5"});
  CHECK(read_file(folder / "a.h5") == before);
}

TEST_CASE("replacing keeps the permissions and follows a link") {
  const TemporaryFolder folder;
  write_sample(folder / "a.h5");
  REQUIRE(chmod((folder / "a.h5").c_str(), 0640) == 0);
  std::filesystem::create_symlink("a.h5", folder / "link.h5");
  write_sample(folder / "link.h5", 9);
  struct stat status {};
  REQUIRE(stat((folder / "a.h5").c_str(), &status) == 0);
  CHECK((status.st_mode & 07777) == 0640);
  CHECK(std::filesystem::is_symlink(folder / "link.h5"));
  CHECK(H5Reader(folder / "a.h5", kind).read<float>("/weights/model.norm.weight", 2)[0] == 9);
}

TEST_CASE("targets that cannot be written are refused at once") {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& path) {
    return message_of(Fault::input, [&] { H5Writer writer(path, kind); });
  };
  CHECK_CONTAINS(message(folder / "absent/a.h5"), "absent does not exist; mkdir -p");
  CHECK_CONTAINS(message(folder.path()), "is a folder, a file's name is needed");
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  std::filesystem::create_symlink("pipe", folder / "link");
  for (const char* name : {"pipe", "link"}) {
    CHECK_CONTAINS(message(folder / name),
                   std::string(name) + ": cannot be replaced by a file; found a pipe; give another name");
  }
  CHECK_CONTAINS(message("/dev/null"), "/dev/null: cannot be replaced by a file; found a device");
  CHECK(std::filesystem::is_fifo(folder / "pipe"));
  CHECK(folder.names() == std::vector<std::string>{"link", "pipe"});
}

TEST_CASE("a read-only folder can be read, by several readers at once, and refuses writers") {
  const TemporaryFolder folder;
  write_sample(folder / "a.h5");
  REQUIRE(chmod((folder / "a.h5").c_str(), 0444) == 0);
  REQUIRE(chmod(folder.path().c_str(), 0555) == 0);
  const H5Reader first(folder / "a.h5", kind);
  CHECK(run_without_privileges([&] {
          const H5Reader second(folder / "a.h5", kind);
          const H5Reader third(folder / "a.h5", kind);
          check(second.read<int32_t>("/ints") == third.read<int32_t>("/ints"), "readers differ");
        }) == 0);
  CHECK(run_without_privileges([&] { H5Writer writer(folder / "b.h5", kind); }) == static_cast<int>(Fault::input));
  CHECK(folder.names() == std::vector<std::string>{"a.h5"});
  REQUIRE(chmod(folder.path().c_str(), 0755) == 0);
}

TEST_CASE("a disk that fills: needed and free bytes, nothing left, the old file stays") {
  const TemporaryFolder folder;
  write_sample(folder / "a.h5");
  const std::string before = read_file(folder / "a.h5");
  // A limit on file sizes stands for the disk, so that the test runs everywhere and without privileges.
  struct rlimit old_limit {};
  getrlimit(RLIMIT_FSIZE, &old_limit);
  struct rlimit limit = old_limit;
  limit.rlim_cur = 1 << 20;
  std::vector<double> values(1 << 19);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<double>(i);
  }
  std::string contiguous;
  std::string streamed;
  REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  try {
    H5Writer writer(folder / "a.h5", kind);
    writer.write("/a", values.data(), {1 << 19});
    writer.write("/b", values.data(), {1 << 19});
    writer.commit();
  } catch (const Error& error) {
    contiguous = error.fault() == Fault::work ? error.what() : "wrong fault";
  }
  try {
    H5Writer writer(folder / "a.h5", kind);
    H5Stream<uint32_t> stream(writer, "/train");
    uint32_t value = 1;
    for (int i = 0; i < 4000000; ++i) {
      value = value * 1664525 + 1013904223;  // noise, which deflate cannot shrink
      stream.append(&value, 1);
    }
    streamed = "it ended without an error";
  } catch (const Error& error) {
    streamed = error.fault() == Fault::work ? error.what() : "wrong fault";
  }
  setrlimit(RLIMIT_FSIZE, &old_limit);
  CHECK_CONTAINS(contiguous, "a.h5: cannot be written: File too large; found ");
  CHECK_CONTAINS(contiguous, " bytes free; expected 83");  // two times 4 MiB and a little
  CHECK_CONTAINS(streamed, "expected more than ");
  CHECK(folder.names() == std::vector<std::string>{"a.h5"});
  CHECK(read_file(folder / "a.h5") == before);
  write_sample(folder / "a.h5");  // and the library still works
}

TEST_CASE("a full tmpfs (as root)") {
  const TemporaryFolder folder;
  const std::string disk = folder / "disk";
  std::filesystem::create_directory(disk);
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=2m") != 0) {
    MESSAGE("no right to mount: the limit on file sizes above is the test");
    return;
  }
  write_file(disk + "/old.h5", "old");
  const std::vector<float> values(1 << 18, 1.0F);
  const std::string message = message_of(Fault::work, [&] {
    H5Writer writer(disk + "/old.h5", kind);
    writer.write("/a", values.data(), {1 << 18});
    writer.write("/b", values.data(), {1 << 18});
    writer.write("/c", values.data(), {1 << 18});
    writer.commit();
  });
  CHECK_CONTAINS(message, "No space left on device; found 20");  // 2 MiB less a page
  CHECK_CONTAINS(message, "bytes free; expected 314");           // three times 1 MiB and a little
  CHECK(read_file(disk + "/old.h5") == "old");
  CHECK(std::distance(std::filesystem::directory_iterator(disk), std::filesystem::directory_iterator()) == 1);
  umount(disk.c_str());
}

TEST_CASE("left-overs of killed writers are removed, those of living ones stay") {
  const TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    _exit(0);
  }
  waitpid(child, nullptr, 0);  // its number is free now
  const std::string stale = fmt::format("a.h5.tmp.{}", child);
  const std::string alive = fmt::format("a.h5.tmp.{}", getppid());
  write_file(folder / stale, "x");
  write_file(folder / alive, "x");
  write_file(folder / "a.h5.tmp.x", "x");
  const std::string foreign = fmt::format("thesis.tmp.{}", child);
  write_file(folder / foreign, "x");
  const auto is_ours = [](const std::string& name) { return name == "a.h5"; };
  CHECK(remove_stale_temporaries(folder.path(), is_ours) == std::vector<std::string>{folder / stale});
  CHECK(folder.names() == std::vector<std::string>{alive, "a.h5.tmp.x", foreign});
}
