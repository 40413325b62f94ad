#include "formats/safetensors.h"

#include "core/error.h"
#include "core/half.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

using namespace minillm;
using namespace minillm::test;
namespace fs = std::filesystem;

namespace {

std::string length_of(uint64_t length) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes;
}

/// A file of this header and these values.
std::string stored(const TemporaryFolder& folder, const std::string& header, const std::string& values) {
  const std::string path = folder / "t.safetensors";
  write_file(path, length_of(header.size()) + header + values);
  return path;
}

template <class T>
std::string bytes_of(std::vector<T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

/// The message of an input error on opening, or "" when the file opens.
std::string refusal(const std::string& path) {
  try {
    const SafetensorsFile file(path);
    return "";
  } catch (const Error& error) {
    CHECK(error.fault() == Fault::input);
    CHECK(std::string(error.what()).find(path) != std::string::npos);
    return error.what();
  }
}

std::string entry(const char* dtype, const char* shape, const char* offsets) {
  return fmt::format(R"({{"t":{{"dtype":"{}","shape":{},"data_offsets":{}}}}})", dtype, shape, offsets);
}

double value_read(const std::string& path, const char* name, int64_t i) {
  const SafetensorsFile file(path);
  const StoredTensor* tensor = file.find(name);
  REQUIRE(tensor != nullptr);
  const Buffer values(tensor->shape, DType::float64);
  file.read(*tensor, values.tensor());
  return values.tensor().at(i);
}

}  // namespace

TEST_CASE("half and bfloat16 widen exactly, all 65,536 patterns") {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const uint16_t pattern = static_cast<uint16_t>(bits);
    const int exponent = (pattern >> 10) & 31;
    const int fraction = pattern & 1023;
    const double sign = (pattern & 0x8000) != 0 ? -1 : 1;
    double expected = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    if (exponent == 31) {
      expected = fraction == 0 ? INFINITY : NAN;
    }
    expected *= sign;
    const float half = half_to_float(pattern);
    const bool same = std::isnan(expected)
                          ? std::isnan(half)
                          : static_cast<double>(half) == expected && std::signbit(half) == std::signbit(expected);
    REQUIRE_MESSAGE(same, "half pattern ", bits);
    const uint32_t widened = bits << 16;
    float brain = bfloat16_to_float(pattern);
    REQUIRE(std::memcmp(&brain, &widened, 4) == 0);
  }
  CHECK(half_to_float(0x3c00) == 1.0F);
  CHECK(half_to_float(0x7bff) == 65504.0F);
  CHECK(bfloat16_to_float(0x3fc0) == 1.5F);
}

TEST_CASE("what is written is the format, byte for byte, and reads back") {
  const TemporaryFolder folder;
  const std::string path = folder / "w.safetensors";
  const Buffer a({2, 2}, DType::float32);
  const Buffer b({1}, DType::float64);
  for (int i = 0; i < 4; ++i) {
    a.tensor().as<float>()[i] = static_cast<float>(i) + 0.5F;
  }
  *b.tensor().as<double>() = 1.0 / 3;
  const std::vector<TensorToSave> tensors = {{"a", a.tensor()}, {"b", b.tensor()}};
  write_safetensors(path, tensors);
  std::string header = R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},)"
                       R"("a":{"dtype":"F32","shape":[2,2],"data_offsets":[8,24]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  CHECK(read_file(path) ==
        length_of(header.size()) + header + bytes_of<double>({1.0 / 3}) + bytes_of<float>({0.5F, 1.5F, 2.5F, 3.5F}));
  CHECK(value_read(path, "b", 0) == 1.0 / 3);
  CHECK(value_read(path, "a", 3) == 3.5);
}

TEST_CASE("four dtypes are converted to float and double") {
  const TemporaryFolder folder;
  const std::string header =
      R"({"h":{"dtype":"F16","shape":[2],"data_offsets":[12,16]},"b":{"dtype":"BF16","shape":[1,2],"data_offsets":[16,20]},)"
      R"("f":{"dtype":"F32","shape":[],"data_offsets":[8,12]},"d":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},)"
      R"("__metadata__":{"anything":"at all"}})";
  const std::string path = stored(folder, header,
                                  bytes_of<double>({0.1}) + bytes_of<float>({-2.25F}) +
                                      bytes_of<uint16_t>({0x3c00, 0xc000}) + bytes_of<uint16_t>({0x3f80, 0xbfc0}));
  CHECK(value_read(path, "d", 0) == 0.1);
  CHECK(value_read(path, "f", 0) == -2.25);
  CHECK(value_read(path, "h", 1) == -2);
  CHECK(value_read(path, "b", 1) == -1.5);
  const SafetensorsFile file(path);
  CHECK(file.tensors().size() == 4);
  CHECK(file.tensors().front().name == "d");
  CHECK(file.find("__metadata__") == nullptr);
  const Buffer narrow({1}, DType::float32);
  file.read(*file.find("d"), narrow.tensor());
  CHECK(*narrow.tensor().as<float>() == 0.1F);
}

TEST_CASE("tensors larger than the conversion buffer arrive whole") {
  const TemporaryFolder folder;
  const int64_t count = 700'001;  // 2.8 MB of float32: not a multiple of the buffer
  const Buffer values({count}, DType::float32);
  for (int64_t i = 0; i < count; ++i) {
    values.tensor().as<float>()[i] = static_cast<float>(i);
  }
  const std::string path = folder / "large.safetensors";
  const std::vector<TensorToSave> tensors = {{"x", values.tensor()}};
  write_safetensors(path, tensors);
  const Buffer back({count}, DType::float32);
  const SafetensorsFile file(path);
  file.read(*file.find("x"), back.tensor());
  CHECK(std::memcmp(back.tensor().data, values.tensor().data, values.tensor().bytes()) == 0);
}

TEST_CASE("a claimed header length is never trusted") {
  const TemporaryFolder folder;
  const std::string path = folder / "length.safetensors";
  rusage before = {};
  ::getrusage(RUSAGE_SELF, &before);
  for (const uint64_t length : {~uint64_t{0}, uint64_t{1} << 63, uint64_t{1'000'000'000'000}, uint64_t{93}, uint64_t{0},
                                uint64_t{1}, ~uint64_t{7}}) {
    write_file(path, length_of(length) + "{" + std::string(91, ' '));
    CHECK_MESSAGE(contains(refusal(path), "header"), length, " ", refusal(path));
  }
  rusage after = {};
  ::getrusage(RUSAGE_SELF, &after);
  CHECK(after.ru_maxrss - before.ru_maxrss < 64 * 1024);  // kB
  for (const size_t bytes : {0, 1, 7, 8, 9}) {
    write_file(path, std::string(bytes, '\0'));
    CHECK_FALSE(refusal(path).empty());
  }
  // The largest length that fits: 92 bytes of header in a file of 100.
  write_file(path, length_of(92) + "{}" + std::string(90, ' '));
  CHECK(refusal(path).empty());
}

TEST_CASE("shape and byte range must agree, and overflow is no way around") {
  const TemporaryFolder folder;
  const char* four = "0000";
  CHECK(refusal(stored(folder, entry("F32", "[1]", "[0,4]"), four)).empty());
  const auto refused = [&](const char* dtype, const char* shape, const char* offsets) {
    const std::string message = refusal(stored(folder, entry(dtype, shape, offsets), four));
    CHECK_MESSAGE(contains(message, "tensor t "), dtype, " ", shape, " ", offsets, ": ", message);
    return message;
  };
  CHECK(contains(refused("F32", "[1000,1000]", "[0,4]"), "4000000 bytes"));
  refused("F32", "[1]", "[4,0]");
  refused("F32", "[1]", "[0]");
  refused("F32", "[1]", "[0,2,4]");
  refused("F32", "[1]", "[-4,0]");
  refused("F32", "[1]", "[0,4.0]");
  refused("F32", "[1]", "[0,18446744073709551615]");
  refused("F32", "[1]", "\"04\"");
  refused("F32", "[2]", "[0,8]");
  refused("F32", "[4294967296,4294967296]", "[0,0]");
  refused("F32", "[4611686018427387904]", "[0,0]");
  refused("F32", "[9223372036854775807,3]", "[0,4]");
  refused("F32", "[-1]", "[0,4]");
  refused("F32", "[1.0]", "[0,4]");
  refused("F32", "[true]", "[0,4]");
  refused("F32", "[1,1,1,1,1,1,1]", "[0,4]");
  refused("F32", "1", "[0,4]");
  refused("F32", "null", "[0,4]");
}

TEST_CASE("an unknown dtype is named and its range checked like any other") {
  const TemporaryFolder folder;
  CHECK(contains(refusal(stored(folder, entry("F33", "[1]", "[0,4]"), "0000")), "F33"));
  CHECK(contains(refusal(stored(folder, entry("f32", "[1]", "[0,4]"), "0000")), "f32"));
  CHECK(contains(refusal(stored(folder, entry("I64", "[1]", "[0,7]"), "0000000")), "8 bytes"));
  CHECK(contains(refusal(stored(folder, entry("BF16", "[3]", "[0,4]"), "0000")), "6 bytes"));
  const std::string path = stored(folder, entry("I64", "[1]", "[0,8]"), "00000000");
  const SafetensorsFile file(path);
  const Buffer values({1}, DType::float32);
  CHECK_THROWS_WITH_AS(file.read(*file.find("t"), values.tensor()), doctest::Contains("dtype I64"), Error);
}

TEST_CASE("names are unique") {
  const TemporaryFolder folder;
  const std::string one = R"("t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  CHECK(contains(refusal(stored(folder, "{" + one + "," + one + "}", "0000")), "tensor t twice"));
  CHECK(
      contains(refusal(stored(folder, R"({"t":{"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]}})", "0000")),
               "key shape twice"));
  // The same field in two tensors is no repetition.
  CHECK(refusal(stored(folder, "{" + one + R"(,"u":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", "00000000"))
            .empty());
}

TEST_CASE("overlaps, gaps and appended bytes are refused, a shared range and empty tensors are legal") {
  const TemporaryFolder folder;
  const auto two = [](const char* first, const char* second, const char* shape = "[1]") {
    return fmt::format(R"({{"a":{{"dtype":"F32","shape":[1],"data_offsets":{}}},)"
                       R"("b":{{"dtype":"F32","shape":{},"data_offsets":{}}}}})",
                       first, shape, second);
  };
  CHECK(refusal(stored(folder, two("[0,4]", "[4,8]"), "00000000")).empty());
  CHECK(refusal(stored(folder, two("[4,8]", "[0,4]"), "00000000")).empty());
  CHECK(refusal(stored(folder, two("[0,4]", "[0,4]"), "0000")).empty());
  CHECK(contains(refusal(stored(folder, two("[0,4]", "[2,6]"), "000000")), "tensor b overlaps"));
  CHECK(contains(refusal(stored(folder, two("[0,4]", "[6,10]"), "0000000000")), "tensor b leaves a gap"));
  CHECK(contains(refusal(stored(folder, two("[0,4]", "[4,8]"), "000000000")), "longer than its tensors"));
  CHECK(refusal(stored(folder, two("[0,4]", "[4,4]", "[0]"), "0000")).empty());
  CHECK(refusal(stored(folder, two("[0,4]", "[0,0]", "[0]"), "0000")).empty());
  CHECK(refusal(stored(folder, two("[0,4]", "[0,0]", "[3,0,5]"), "0000")).empty());
  const std::string between =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
      R"("e":{"dtype":"F32","shape":[0],"data_offsets":[4,4]},"z":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})";
  const std::string path = stored(folder, between, bytes_of<float>({1, 2}));
  CHECK(value_read(path, "z", 0) == 2);
  const SafetensorsFile file(path);
  const Buffer nothing({0}, DType::float32);
  file.read(*file.find("e"), nothing.tensor());
}

TEST_CASE("headers of any length load") {
  const TemporaryFolder folder;
  for (const size_t length : {88, 4088, 4096, 65528, 65536, 99'994, 100'000}) {
    std::string header = entry("F32", "[1]", "[0,4]");
    header.resize(length, ' ');
    CHECK(value_read(stored(folder, header, bytes_of<float>({7})), "t", 0) == 7);
  }
}

TEST_CASE("a header that is no such JSON is refused") {
  const TemporaryFolder folder;
  for (const char* header : {"{", "{}x", "{\"a\":1}", "{\"a\":{}}", "{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}",
                             "{\"a\":[1,2]}", "{\"\xff\":1}", "{\"__metadata__\":{\"a\":[[[1]]]}}",
                             "{\"a\":{\"dtype\":3,\"shape\":[],\"data_offsets\":[0,4]}}"}) {
    CHECK_MESSAGE(!refusal(stored(folder, header, "0000")).empty(), header);
  }
  const std::string deep = "{\"a\":" + std::string(1'000'000, '[') + "}";
  CHECK(contains(refusal(stored(folder, deep, "")), "nested"));
}

TEST_CASE("every cut of a file is refused") {
  const TemporaryFolder folder;
  const std::string whole = folder / "whole.safetensors";
  const Buffer values({50}, DType::float32);
  const std::vector<TensorToSave> tensors = {{"x", values.tensor()}};
  write_safetensors(whole, tensors);
  const std::string bytes = read_file(whole);
  const std::string path = folder / "cut.safetensors";
  for (size_t sixteenth = 0; sixteenth < 16; ++sixteenth) {
    write_file(path, bytes.substr(0, bytes.size() * sixteenth / 16));
    CHECK_FALSE(refusal(path).empty());
  }
  write_file(path, bytes.substr(0, bytes.size() - 1));
  CHECK(contains(refusal(path), "found 199 bytes of values; expected at least 200"));
}

TEST_CASE("a file of another kind is named") {
  const TemporaryFolder folder;
  const std::string path = folder / "other";
  const auto named = [&](const std::string& bytes, const char* kind) {
    write_file(path, bytes + std::string(200, '\n'));
    CHECK_MESSAGE(contains(refusal(path), kind), refusal(path));
  };
  named("\x89HDF\r\n\x1a\n", "HDF5");
  named("GGUF", "GGUF");
  named("PK\x03\x04", "zip archive");
  named("Once upon a time", "found text");
  named("minillm-file\nbytes", "a file of minillm");
  CHECK(contains(refusal(folder / "absent"), "No such file"));
  CHECK(contains(refusal(folder.path()), "not a file"));
}

TEST_CASE("a name twice, or broken UTF-8 in a name, leaves no file behind") {
  const TemporaryFolder folder;
  const std::string path = folder / "bad.safetensors";
  const Buffer values({1}, DType::float32);
  const std::vector<TensorToSave> twice = {{"x", values.tensor()}, {"x", values.tensor()}};
  CHECK_THROWS_WITH_AS(write_safetensors(path, twice), doctest::Contains("written twice"), Error);
  const std::vector<TensorToSave> broken = {{"\xff", values.tensor()}};
  CHECK_THROWS_WITH_AS(write_safetensors(path, broken), doctest::Contains("not UTF-8"), Error);
  CHECK(folder.names().empty());
}
