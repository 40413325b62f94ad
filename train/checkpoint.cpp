#include "train/checkpoint.h"

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/log.h"
#include "core/text.h"
#include "train/run_folder.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

namespace minillm {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view step_prefix = "step_";
constexpr std::string_view extension = ".h5";
constexpr size_t most_differences_listed = 20;

H5Format checkpoint_format() {
  return {.name = std::string(checkpoint_format_name), .version = 1, .remedy = "use an older checkpoint of the run"};
}

void write_tensors(H5Writer& writer, const std::string& group, const ParameterStore& store, const Tensor& flat) {
  const std::vector<std::string_view> names = store.names();
  const std::vector<Tensor> tensors = store.views(flat);
  for (size_t i = 0; i < names.size(); ++i) {
    writer.write(fmt::format("{}/{}", group, names[i]), tensors[i]);
  }
}

void write_state(H5Writer& writer, const RunState& state) {
  writer.write("/state/step", &state.step, Shape{});
  for (const auto& [key, value] : state.integers) {
    writer.write("/state/" + key, &value, Shape{});
  }
  for (const auto& [key, value] : state.numbers) {
    writer.write("/state/" + key, &value, Shape{});
  }
  for (const auto& [key, value] : state.texts) {
    writer.write_bytes("/state/" + key, value);
  }
}

RunState read_state(const H5Reader& reader) {
  RunState state;
  state.step = reader.read<int64_t>("/state/step", 0).front();
  for (const std::string& key : reader.list("/state")) {
    const std::string name = "/state/" + key;
    const H5Type type = reader.type(name);
    if (key == "step") {
      continue;
    }
    if (type == H5Type::i64) {
      state.integers[key] = reader.read<int64_t>(name, 0).front();
    } else if (type == H5Type::f64) {
      state.numbers[key] = reader.read<double>(name, 0).front();
    } else {
      state.texts[key] = reader.read_bytes(name);
    }
  }
  return state;
}

void write_checkpoint(const std::string& path, const CheckpointContents& contents) {
  H5Writer writer(path, checkpoint_format());
  write_tensors(writer, "/weights", contents.store, contents.store.weights());
  if (contents.optimizer != nullptr) {
    write_tensors(writer, "/optimizer/m", contents.store, contents.optimizer->m());
    write_tensors(writer, "/optimizer/v", contents.store, contents.optimizer->v());
    const int64_t updates = contents.optimizer->steps();
    writer.write("/optimizer/steps", &updates, Shape{});
  }
  write_state(writer, contents.state);
  writer.write_bytes("/config", contents.config);
  writer.write_bytes("/tokenizer", contents.tokenizer);
  writer.commit();
}

template <class Value>
const Value& of_state(const std::map<std::string, Value>& values, const std::string& key, const std::string& path) {
  const auto found = values.find(key);
  if (found == values.end()) {
    fail_input({.where = path, .what = "/state/" + key + " is missing", .hint = checkpoint_format().remedy});
  }
  return found->second;
}

/// The step in "step_000500.h5", or -1.
int64_t step_of(const std::string& file_name) {
  if (!file_name.starts_with(step_prefix) || !file_name.ends_with(extension)) {
    return -1;
  }
  const char* begin = file_name.data() + step_prefix.size();
  const char* end = file_name.data() + file_name.size() - extension.size();
  int64_t step = -1;
  const auto parsed = std::from_chars(begin, end, step);
  return parsed.ec == std::errc() && parsed.ptr == end ? step : -1;
}

/// Files of later steps than the one just saved are not counted: they are what a resume found damaged, and must not
/// push out the checkpoint that works.
void remove_old_checkpoints(const std::string& run_folder, int64_t saved_step, int64_t keep) {
  std::vector<int64_t> steps = checkpoint_steps(run_folder);
  steps.erase(std::upper_bound(steps.begin(), steps.end(), saved_step), steps.end());
  const size_t kept = static_cast<size_t>(std::max<int64_t>(keep, 1));
  for (size_t i = 0; i + kept < steps.size(); ++i) {
    std::error_code error;
    if (!fs::remove(checkpoint_path(run_folder, steps[i]), error) && error) {
      log_warning("{} cannot be removed: {}", checkpoint_path(run_folder, steps[i]), error.message());
    }
  }
}

/// Reads a dataset of either float type into a tensor of either.
void read_converted(const H5Reader& reader, const std::string& name, const Tensor& into) {
  const H5Type type = reader.type(name);
  const bool same = type == (into.dtype == DType::float64 ? H5Type::f64 : H5Type::f32);
  if (same || (type != H5Type::f32 && type != H5Type::f64)) {
    reader.read(name, into);  // which refuses a type that is no float
    return;
  }
  const Buffer stored(into.shape, type == H5Type::f64 ? DType::float64 : DType::float32);
  reader.read(name, stored.tensor());
  copy_values(stored.tensor(), into);
}

std::string list_of_checkpoints(const std::string& run_folder) {
  std::vector<std::string> names;
  for (const int64_t step : checkpoint_steps(run_folder)) {
    names.push_back(fmt::format("{}", step));
  }
  if (fs::exists(best_checkpoint_path(run_folder))) {
    names.emplace_back("best");
  }
  return names.empty() ? "the run has no checkpoint" : "the run has the checkpoints " + join(names);
}

}  // namespace

std::string best_checkpoint_path(const std::string& run_folder) {
  return checkpoints_path(run_folder) + "/best.h5";
}

std::string checkpoint_path(const std::string& run_folder, int64_t step) {
  return fmt::format("{}/{}{:06}{}", checkpoints_path(run_folder), step_prefix, step, extension);
}

std::vector<int64_t> checkpoint_steps(const std::string& run_folder) {
  std::vector<int64_t> steps;
  std::error_code error;
  for (fs::directory_iterator entry(checkpoints_path(run_folder), error), end; !error && entry != end;
       entry.increment(error)) {
    const int64_t step = step_of(entry->path().filename().string());
    if (step >= 0) {
      steps.push_back(step);
    }
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

void clean_checkpoints(const std::string& run_folder) {
  remove_stale_temporaries(run_folder, is_replaced_whole);
  remove_stale_temporaries(checkpoints_path(run_folder),
                           [](const std::string& name) { return name == "best.h5" || step_of(name) >= 0; });
}

std::string save_checkpoint(const std::string& run_folder, const CheckpointContents& contents, int64_t keep) {
  std::string path = checkpoint_path(run_folder, contents.state.step);
  write_checkpoint(path, contents);
  remove_old_checkpoints(run_folder, contents.state.step, keep);
  return path;
}

std::string save_best_checkpoint(const std::string& run_folder, const CheckpointContents& contents) {
  write_checkpoint(best_checkpoint_path(run_folder), contents);
  return best_checkpoint_path(run_folder);
}

Checkpoint::Checkpoint(const std::string& path) : reader_(path, checkpoint_format()), state_(read_state(reader_)) {}

int64_t Checkpoint::integer(const std::string& key) const {
  return of_state(state_.integers, key, path());
}

double Checkpoint::number(const std::string& key) const {
  return of_state(state_.numbers, key, path());
}

const std::string& Checkpoint::text(const std::string& key) const {
  return of_state(state_.texts, key, path());
}

std::string Checkpoint::config() const {
  return reader_.read_bytes("/config");
}

std::string Checkpoint::tokenizer() const {
  return reader_.read_bytes("/tokenizer");
}

bool Checkpoint::has_optimizer() const {
  return reader_.has("/optimizer/steps");
}

void Checkpoint::check_names_and_shapes(const ParameterStore& store, const std::string& group) const {
  const std::vector<std::string> listed = reader_.list(group);
  std::set<std::string> stored(listed.begin(), listed.end());
  std::vector<std::string> differences;
  const std::vector<std::string_view> names = store.names();
  const std::vector<Tensor> tensors = store.views(store.weights());
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string name(names[i]);
    if (stored.erase(name) == 0) {
      differences.push_back(
          fmt::format("{}: missing in the file, the model has {}", name, to_string(tensors[i].shape)));
      continue;
    }
    const Shape shape = reader_.shape(fmt::format("{}/{}", group, name));
    if (!(shape == tensors[i].shape)) {
      differences.push_back(
          fmt::format("{}: {} in the file, {} in the model", name, to_string(shape), to_string(tensors[i].shape)));
    }
  }
  for (const std::string& name : stored) {
    const Shape shape = reader_.shape(fmt::format("{}/{}", group, name));
    differences.push_back(fmt::format("{}: {} in the file, not in the model", name, to_string(shape)));
  }
  if (differences.empty()) {
    return;
  }
  const size_t count = differences.size();
  if (count > most_differences_listed) {
    differences.resize(most_differences_listed);
    differences.push_back(fmt::format("and {} more", count - most_differences_listed));
  }
  fail_input(
      {.where = path(), .what = fmt::format("{} does not fit the model:\n  {}", group, join(differences, "\n  "))});
}

void Checkpoint::load_weights(const ParameterStore& store) const {
  check_names_and_shapes(store, "/weights");
  for (const NamedTensor& named : store.named_tensors()) {
    load_weight(named.name, named.value);
  }
}

void Checkpoint::load_weight(std::string_view name, const Tensor& into) const {
  read_converted(reader_, fmt::format("/weights/{}", name), into);
}

void Checkpoint::check_can_go_on() const {
  if (!has_optimizer()) {
    fail_input({.where = path(),
                .what = "holds weights only, so a run cannot go on from it",
                .hint = "start a new run from them with --init"});
  }
}

void Checkpoint::load_optimizer(const ParameterStore& store, AdamW& optimizer) const {
  check_can_go_on();
  const std::pair<std::string, Tensor> moments[] = {{"/optimizer/m", optimizer.m()}, {"/optimizer/v", optimizer.v()}};
  for (const auto& [group, flat] : moments) {
    check_names_and_shapes(store, group);
    const std::vector<std::string_view> names = store.names();
    const std::vector<Tensor> tensors = store.views(flat);
    for (size_t i = 0; i < names.size(); ++i) {
      reader_.read(fmt::format("{}/{}", group, names[i]), tensors[i]);
    }
  }
  optimizer.set_steps(reader_.read<int64_t>("/optimizer/steps", 0).front());
}

std::optional<Checkpoint> newest_checkpoint(const std::string& run_folder) {
  std::vector<int64_t> steps = checkpoint_steps(run_folder);
  while (!steps.empty()) {
    const std::string path = checkpoint_path(run_folder, steps.back());
    try {
      return Checkpoint(path);
    } catch (const Error& error) {
      std::error_code ignored;
      if (!fs::exists(path, ignored)) {  // a run that is under way has replaced it by a newer one
        steps = checkpoint_steps(run_folder);
        continue;
      }
      log_warning("{}; it is skipped", error.what());
    }
    steps.pop_back();
  }
  return std::nullopt;
}

bool awaits_first_checkpoint(const std::string& run_folder) {
  std::error_code error;
  return checkpoint_steps(run_folder).empty() && fs::is_directory(checkpoints_path(run_folder), error);
}

Continuation continuation_of(const std::string& run_folder) {
  std::vector<int64_t> steps = checkpoint_steps(run_folder);
  std::reverse(steps.begin(), steps.end());
  for (const int64_t step : steps) {
    try {
      const Checkpoint checkpoint(checkpoint_path(run_folder, step));
      return checkpoint.has_optimizer() ? Continuation::resume : Continuation::weights;
    } catch (const Error&) {
      continue;  // a damaged one is skipped by a resume too
    }
  }
  return awaits_first_checkpoint(run_folder) ? Continuation::resume : Continuation::none;
}

Checkpoint open_checkpoint(const std::string& run, const std::string& which) {
  std::error_code error;
  if (fs::is_regular_file(run, error)) {
    return Checkpoint(run);
  }
  check_run_folder(run);
  if (which.empty() || which == "last") {
    if (std::optional<Checkpoint> newest = newest_checkpoint(run)) {
      return std::move(*newest);
    }
    const bool has_best = fs::exists(best_checkpoint_path(run), error);
    fail_input({.where = run,
                .what = "no valid checkpoint",
                .hint = list_of_checkpoints(run) + (has_best ? "; try --checkpoint best" : "")});
  }
  int64_t step = -1;
  const auto parsed = std::from_chars(which.data(), which.data() + which.size(), step);
  const bool is_number = parsed.ec == std::errc() && parsed.ptr == which.data() + which.size() && step >= 0;
  if (!is_number && which != "best") {
    fail_input({.where = "--checkpoint",
                .what = "no such checkpoint",
                .found = which,
                .expected = "last, best or a number of steps"});
  }
  const std::string path = is_number ? checkpoint_path(run, step) : best_checkpoint_path(run);
  if (!fs::exists(path, error)) {
    fail_input(
        {.where = run, .what = fmt::format("there is no checkpoint {}", which), .hint = list_of_checkpoints(run)});
  }
  return Checkpoint(path);
}

}  // namespace minillm
