#include "train/metrics.h"

#include "core/error.h"
#include "tests/support/limits.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"
#include "train/summary.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace minillm;
using namespace minillm::test;

TEST_CASE("numbers are the shortest text that reads back, and null when not finite") {
  CHECK(to_json(TrainRecord{0, 7.625, 1.9, 1e-5, 4096, 5210.3}) ==
        R"({"step":0,"loss":7.625,"grad_norm":1.9,"lr":1e-05,"tokens":4096,"tokens_per_s":5210.3})");
  CHECK(to_json(TrainRecord{12, 0.1 + 0.2, NAN, 1.0, 1, INFINITY}) ==
        R"({"step":12,"loss":0.30000000000000004,"grad_norm":null,"lr":1,"tokens":1,"tokens_per_s":null})");
  CHECK(to_json(EvalRecord{50, 4.21, 1.9}) == R"({"step":50,"val_loss":4.21,"val_bits_per_byte":1.9})");
  CHECK(to_json(EvalRecord{50, 4.21}) == R"({"step":50,"val_loss":4.21,"val_bits_per_byte":null})");
}

TEST_CASE("what is written is read back to the same bits, while the file is being written too") {
  TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  CHECK(read_metrics(path).train.empty());
  MetricsWriter writer(path, 0);
  writer.append(TrainRecord{0, 1.0 / 3, 2.0 / 3, 1e-3 / 7, 4096, 1e4 / 3});
  writer.append(TrainRecord{1, NAN, 1, 1, 8192, 1});
  writer.append(EvalRecord{2, std::exp(1.0), 0.1});
  std::ofstream(path, std::ios::app) << "{\"step\":2,\"lo";
  const Metrics metrics = read_metrics(path);
  REQUIRE(metrics.train.size() == 2);
  CHECK(metrics.train[0].loss == 1.0 / 3);
  CHECK(metrics.train[0].lr == 1e-3 / 7);
  CHECK(metrics.train[0].tokens_per_s == 1e4 / 3);
  CHECK(metrics.train[1].tokens == 8192);
  CHECK(std::isnan(metrics.train[1].loss));
  REQUIRE(metrics.evaluations.size() == 1);
  CHECK(metrics.evaluations[0].val_loss == std::exp(1.0));
}

TEST_CASE("a resume cuts the file to what the checkpoint knows, and no step is there twice") {
  TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  int64_t known = 0;
  {
    MetricsWriter writer(path, 0);
    writer.append(TrainRecord{0, 5, 1, 1, 1, 1});
    writer.append(EvalRecord{1, 4});
    known = writer.sync();
    CHECK(known == static_cast<int64_t>(std::filesystem::file_size(path)));
    writer.append(TrainRecord{1, 4, 1, 1, 2, 1});
    std::ofstream(path, std::ios::app) << "{\"step\":2,\"lo";
  }
  const std::string before = read_file(path).substr(0, static_cast<size_t>(known));
  MetricsWriter writer(path, known);
  CHECK(read_file(path) == before);
  CHECK_THROWS_AS(writer.append(TrainRecord{0, 5, 1, 1, 1, 1}), Error);
  CHECK_THROWS_AS(writer.append(EvalRecord{1, 4}), Error);
  writer.append(TrainRecord{1, 4.5, 1, 1, 2, 1});
  CHECK_THROWS_AS(writer.append(TrainRecord{1, 4.5, 1, 1, 2, 1}), Error);
  CHECK(read_file(path) == before + to_json(TrainRecord{1, 4.5, 1, 1, 2, 1}) + "\n");
  CHECK(writer.sync() == static_cast<int64_t>(std::filesystem::file_size(path)));
}

TEST_CASE("a shorter file than the checkpoint knows keeps its whole lines") {
  TemporaryFolder folder;
  const std::string line = to_json(TrainRecord{0, 5, 1, 1, 1, 1}) + "\n";
  const std::string path = folder.write("metrics.jsonl", line + "{\"step\":1,\"lo");
  MetricsWriter writer(path, 100000);
  CHECK(read_file(path) == line);
  writer.append(TrainRecord{1, 5, 1, 1, 1, 1});
  CHECK(read_metrics(path).train.size() == 2);
}

TEST_CASE("a broken line is named, and an unwritable file is an input error") {
  TemporaryFolder folder;
  const std::string path =
      folder.write("metrics.jsonl", "{\"step\":0,\"val_loss\":1,\"val_bits_per_byte\":1}\nhello\n");
  try {
    read_metrics(path);
    FAIL_CHECK("no error");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).starts_with(path + ":2: not a line of metrics; found hello"));
  }
  CHECK_THROWS_AS(MetricsWriter(folder / "no/metrics.jsonl", 0), Error);
}

TEST_CASE("a disk that fills leaves no part of a line") {
  TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  MetricsWriter writer(path, 0);
  writer.append(TrainRecord{0, 5, 1, 1, 1, 1});
  const std::string before = read_file(path);
  {
    const FileSizeLimit full(before.size() + 20);
    message_of(Fault::work, [&] { writer.append(TrainRecord{1, 5, 1, 1, 1, 1}); });
  }
  CHECK(read_file(path) == before);
  writer.append(TrainRecord{1, 5, 1, 1, 1, 1});
  CHECK(read_metrics(path).train.size() == 2);
}

namespace {

Metrics curve(const std::vector<double>& losses, const std::vector<double>& val_losses) {
  Metrics metrics;
  for (size_t i = 0; i < losses.size(); ++i) {
    const double x = static_cast<double>(i);
    metrics.train.push_back({static_cast<int64_t>(i), losses[i], 1 + x, 1e-3, 1, 100 * (x + 1)});
  }
  for (size_t i = 0; i < val_losses.size(); ++i) {
    metrics.evaluations.push_back({static_cast<int64_t>(i + 1) * 10, val_losses[i]});
  }
  return metrics;
}

}  // namespace

TEST_CASE("a summary follows from the metrics") {
  const Summary summary = summarize(curve({5, 4, 6, 3}, {4, 2, 3}), 6.2);
  CHECK(summary.steps == 4);
  CHECK(summary.final_val_loss == 3);
  CHECK(summary.best_val_loss == 2);
  CHECK(summary.grad_norm_max_first_100 == 4);
  CHECK(summary.tokens_per_s == 250);
  CHECK_FALSE(summary.diverged);  // 6 is not above 5 + 1
  CHECK_FALSE(summary.stalled);
  CHECK(summarize(curve({5, 6.01}, {}), 6.2).diverged);
  CHECK(summarize(curve({5, NAN}, {}), 6.2).diverged);
  CHECK(summarize(curve(std::vector<double>(150, 5), {}), 6.2).grad_norm_max_first_100 == 100);
  CHECK(summarize(curve({}, {7, 7, 7, 6.24, 6.16}), 6.2).stalled);  // evaluations after 40 and 50 of 50
  CHECK_FALSE(summarize(curve({}, {7, 7, 7, 6.24, 6.1}), 6.2).stalled);
  CHECK_FALSE(summarize(curve({}, {6.2, 6.2, 6.2, 6.0, 6.2}), 6.2).stalled);
  CHECK_FALSE(summarize(curve({}, {}), 6.2).stalled);
  CHECK_FALSE(summarize(curve({}, {6.2}), NAN).stalled);
  CHECK(std::isnan(summarize({}, NAN).final_val_loss));
}

TEST_CASE("summary.json has its keys in order, whatever the texts hold") {
  TemporaryFolder folder;
  Summary summary = summarize(curve({5, 4}, {4.5}), NAN);
  summary.parameters = 3688704;
  summary.version = "0.1.0";
  summary.commit = "a\"b";
  summary.numerics = "n";
  summary.threads = 2;
  summary.cpu = "bad \xff byte";
  write_summary(folder / "summary.json", summary);
  CHECK(read_file(folder / "summary.json") ==
        "{\n  \"end\": \"finished\",\n  \"steps\": 2,\n  \"parameters\": 3688704,\n  \"final_val_loss\": 4.5,\n  "
        "\"best_val_loss\": 4.5,\n"
        "  \"grad_norm_max_first_100\": 2,\n  \"diverged\": false,\n  \"stalled\": false,\n  \"unigram_loss\": null,\n"
        "  \"tokens_per_s\": 150,\n  \"peak_memory_bytes\": 0,\n  \"seconds\": 0,\n  \"init\": \"\",\n  \"version\": "
        "\"0.1.0\",\n"
        "  \"commit\": \"a\\\"b\",\n  \"numerics\": \"n\",\n  \"threads\": 2,\n  \"cpu\": \"bad \xef\xbf\xbd "
        "byte\"\n}\n");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a summary reads back to what was written") {
  TemporaryFolder folder;
  CHECK_FALSE(read_summary(folder / "summary.json").has_value());
  Summary summary = summarize(curve({5, 7}, {4.5, 1.0 / 3}), 6.25);
  summary.end = "failed";
  summary.parameters = 3688704;
  summary.peak_memory_bytes = int64_t{1} << 40;
  summary.seconds = 0.1;
  summary.init = "w.safetensors";
  summary.version = "0.1.0";
  summary.commit = "abc";
  summary.numerics = "n";
  summary.threads = 3;
  summary.cpu = "a processor";
  write_summary(folder / "summary.json", summary);
  const std::optional<Summary> read = read_summary(folder / "summary.json");
  REQUIRE(read.has_value());
  CHECK(to_json(*read) == to_json(summary));
  CHECK(read->diverged);
  std::string without_end = read_file(folder / "summary.json");
  without_end.erase(without_end.find("  \"end\""), std::string("  \"end\": \"failed\",\n").size());
  write_file(folder / "old.json", without_end);
  CHECK(read_summary(folder / "old.json")->end == "finished");
  write_file(folder / "broken.json", "{\"steps\": 1");
  CHECK(contains(message_of(Fault::input, [&] { read_summary(folder / "broken.json"); }),
                 "broken.json: not the summary of a run"));
}
