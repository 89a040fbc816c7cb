#include "onebit/ground/metrics/run_history.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/run_files.h"
#include "onebit/ground/metrics/log_line.h"
#include "onebit/ground/metrics/metric.h"

namespace onebit::metrics {

namespace {

constexpr uint64_t kMaxLogBytes = uint64_t{4} << 30;

// Adds the numbers of `object` under "prefix.key", where null stands for NaN. Counts are added only
// if `counts` is set.
void add_numbers(std::map<std::string, Series>& to, const Json& object, const std::string& prefix,
                 double step, bool counts) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = prefix.empty() ? key : nested(prefix, key);
    if (value.is_object()) {
      add_numbers(to, value, name, step, counts);
    } else if (value.is_null()) {
      to[name].push_back({step, std::nan("")});
    } else if (value.is_number() && (counts || !is_count(value))) {
      to[name].push_back({step, value.get<double>()});
    }
  }
}

void add_phase(std::vector<PhaseSpan>& phases, const std::string& name, int64_t step) {
  if (phases.empty() || phases.back().name != name) phases.push_back({name, step, step});
  phases.back().last_step = step;
}

RunTable table_of(const Json& line, int64_t step) {
  RunTable read = {.step = step, .time = line.value(log_line::kTime, ""), .rows = {}};
  for (const Json& row : line.at(log_line::kRows)) {
    read.rows.emplace_back(row.at(0).get<std::string>(), row.at(1).get<std::string>());
  }
  return read;
}

void add_start(RunHistory& run, const Json& line, int64_t step) {
  run.starts.push_back(table_of(line, step));
  const Json expected = line.value(log_line::kExpectedSeconds, Json::object());
  run.expected_dense_seconds = expected.value(log_line::expected::kDense, 0.0);
  run.expected_compressed_seconds = expected.value(log_line::expected::kCompressed, 0.0);
  if (!line.contains(log_line::kKeptBy)) return;
  const Json& kept = line.at(log_line::kKeptBy);
  run.kept_best = {.metric = kept.at(log_line::kept_by::kMetric),
                   .smaller_is_better = kept.at(log_line::kept_by::kSmallerIsBetter)};
}

void add_step(RunHistory& run, const Json& line, int64_t step) {
  add_phase(run.phases, line.at(log_line::kPhase).get<std::string>(), step);
  add_numbers(run.training, line, "", static_cast<double>(step), true);
  run.last_step = std::max(run.last_step, step);
}

void add_evaluation(RunHistory& run, const Json& line, int64_t step) {
  for (const auto& [key, value] : line.items()) {
    if (value.is_object()) {
      add_numbers(run.evaluations, value, key, static_cast<double>(step), false);
    }
  }
}

// Returns the error in the line, or null.
const char* add_line(RunHistory& run, std::string_view text) {
  try {
    const Json line = Json::parse(text);
    const auto step = line.at(log_line::kStep).get<int64_t>();
    const auto kind = log_line::kind_of(line);
    if (!kind) return "has no \"kind\" that this onebit knows";
    if (*kind == log_line::Kind::kStep) add_step(run, line, step);
    if (*kind == log_line::Kind::kEvaluation) add_evaluation(run, line, step);
    if (*kind == log_line::Kind::kStart) add_start(run, line, step);
    if (*kind == log_line::Kind::kEnd) run.ends.push_back(table_of(line, step));
    return nullptr;
  } catch (const Json::exception&) {
    return "not a metrics object";
  }
}

// Consecutive lines with the same damage.
struct Damage {
  size_t first = 0, last = 0;
  std::string reason;

  std::string text() const {
    const std::string lines =
        first == last ? fmt::format("line {}", first) : fmt::format("lines {} to {}", first, last);
    return fmt::format("{}, {}: {}", run_files::kMetrics, lines, reason);
  }
};

void read_lines(RunHistory& run, const Path& path) {
  const std::string text = read_regular_file(path, kMaxLogBytes);
  std::vector<Damage> damage;
  size_t number = 1;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    if (line.empty()) continue;
    const char* wrong = add_line(run, line);
    if (wrong == nullptr) continue;
    if (begin > text.size()) wrong = "cut short, as by a kill";
    if (damage.empty() || damage.back().last + 1 != number || damage.back().reason != wrong) {
      damage.push_back({.first = number, .last = number, .reason = wrong});
    }
    damage.back().last = number;
  }
  for (const Damage& one : damage) run.damage.push_back(one.text());
}

void read_recipe(RunHistory& run, const Path& folder) {
  const Path given = folder / run_files::kRecipe, resolved = folder / run_files::kResolvedRecipe;
  if (std::filesystem::exists(given)) run.recipe = read_regular_file(given, kMaxJsonBytes);
  if (!std::filesystem::exists(resolved)) return;
  const Json recipe = Json::parse(read_regular_file(resolved, kMaxJsonBytes), nullptr, false);
  const Json::json_pointer steps("/run/steps");
  if (!recipe.is_discarded() && recipe.contains(steps) && recipe.at(steps).is_number_integer()) {
    run.wanted_steps = recipe.at(steps).get<int64_t>();
  }
}

}  // namespace

RunHistory read_run(const Path& folder) {
  require(std::filesystem::is_directory(folder),
          "{}: not a folder; give the folder of a run (--output of the command that trained)",
          folder.string());
  const Path log = folder / run_files::kMetrics;
  require(std::filesystem::exists(log),
          "{}: no {} here; give the folder of a run (--output of the command that trained), not of "
          "a checkpoint or a model",
          folder.string(), run_files::kMetrics);
  RunHistory run;
  const Path whole = std::filesystem::absolute(folder).lexically_normal();
  run.name = (whole.filename().empty() ? whole.parent_path() : whole).filename().string();
  run.folder = folder.string();
  read_lines(run, log);
  read_recipe(run, folder);
  return run;
}

std::string data_of(const std::string& key) {
  const size_t first = key.find('.'), last = key.rfind('.');
  return first == last ? "" : key.substr(first + 1, last - first - 1);
}

std::string nested(const std::string& object, const std::string& name) {
  return object + "." + name;
}

const Series* find(const std::map<std::string, Series>& among, const std::string& key) {
  const auto found = among.find(key);
  return found == among.end() ? nullptr : &found->second;
}

}  // namespace onebit::metrics
