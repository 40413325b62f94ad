// Static figures: gnuplot draws, where it is installed.

#include "core/text.h"
#include "suite/report.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <utility>

namespace minillm {

namespace {

/// Okabe and Ito's colours, which people who see colours differently can tell apart (jfly.uni-koeln.de/color).
constexpr std::array<const char*, 8> colours = {"#000000", "#e69f00", "#56b4e9", "#009e73",
                                                "#0072b2", "#d55e00", "#cc79a7", "#8a8a00"};

/// A file that is gone with its name's owner.
class ScriptFile {
 public:
  explicit ScriptFile(const std::string& text)
      : path_((std::filesystem::temp_directory_path() / "minillm-plot-XXXXXX").string()) {
    const int descriptor = ::mkstemp(path_.data());
    written_ = descriptor >= 0 && ::write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    if (descriptor >= 0) {
      ::close(descriptor);
    }
  }
  ~ScriptFile() { ::unlink(path_.c_str()); }
  ScriptFile(const ScriptFile&) = delete;
  ScriptFile& operator=(const ScriptFile&) = delete;

  bool written() const { return written_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  bool written_ = false;
};

/// What gnuplot writes for a script; "" when there is no gnuplot, or it refuses the script.
std::string run_gnuplot(const std::string& script) {
  const ScriptFile file(script);
  if (!file.written()) {
    return "";
  }
  std::FILE* pipe = ::popen(("gnuplot " + shell_word(file.path()) + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) {
    return "";
  }
  std::string output;
  std::array<char, 4096> buffer{};
  for (size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe); got > 0;
       got = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    output.append(buffer.data(), got);
  }
  return ::pclose(pipe) == 0 ? output : "";
}

/// A name as gnuplot's quoted text takes it: a line's end in it would end the text, and begin a command.
std::string quoted(std::string text) {
  const auto is_special = [](unsigned char c) { return c < 0x20 || c == 0x7f || c == '\''; };
  std::replace_if(text.begin(), text.end(), is_special, ' ');
  return "'" + text + "'";
}

/// Means over a group's runs of what each logged at a step.
std::string mean_curve(const Comparison& comparison, const RunGroup& group) {
  std::map<int64_t, std::pair<double, int64_t>> sums;
  for (const size_t index : group.runs) {
    for (const EvalRecord& record : comparison.runs[index].metrics.evaluations) {
      if (std::isfinite(record.val_loss)) {
        sums[record.step].first += record.val_loss;
        ++sums[record.step].second;
      }
    }
  }
  std::string text;
  for (const auto& [step, sum] : sums) {
    text += fmt::format("{} {}\n", step, sum.first / static_cast<double>(sum.second));
  }
  return text;
}

}  // namespace

std::string curves_svg(const Comparison& comparison) {
  std::string data;
  std::string plots;
  size_t number = 0;
  for (const RunGroup& group : comparison.groups) {
    const std::string points = mean_curve(comparison, group);
    if (points.empty()) {
      continue;
    }
    data += fmt::format("$group{} << EOD\n{}EOD\n", number, points);
    plots += fmt::format("{}$group{} with lines linewidth 1.5 linecolor rgb '{}' dashtype {} title {}",
                         plots.empty() ? "" : ", ", number, colours[number % colours.size()],
                         1 + number / colours.size(), quoted(group.name));
    ++number;
  }
  if (plots.empty()) {
    return "";
  }
  const double unigram = comparison.unigram_loss();
  if (std::isfinite(unigram)) {
    plots += fmt::format(", {} with lines dashtype 3 linecolor rgb '#888888' title 'unigram'", unigram);
  }
  return run_gnuplot(
      fmt::format("set terminal svg size 900,520 dynamic enhanced background rgb 'white' font 'sans,13'\n"
                  "set termoption noenhanced\nset title {}\nset xlabel 'updates'\n"
                  "set ylabel 'validation loss, nats a token'\nset grid linecolor rgb '#dddddd'\n"
                  "set key outside right top\nset border 3\nset tics nomirror\n{}plot {}\n",
                  quoted(comparison.title), data, plots));
}

}  // namespace minillm
