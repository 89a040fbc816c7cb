#include "onebit/report/run_history.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "onebit/base/error.h"
#include "onebit/base/json.h"

namespace onebit::report {
namespace {

// Adds the numbers of `object` under "prefix.key"; null, which stands for NaN, as NaN.
void add_numbers(std::map<std::string, Series>& to, const Json& object, const std::string& prefix,
                 double step) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = prefix.empty() ? key : prefix + "." + key;
    if (value.is_object()) {
      add_numbers(to, value, name, step);
    } else if (value.is_number()) {
      to[name].push_back({step, value.get<double>()});
    } else if (value.is_null()) {
      to[name].push_back({step, std::nan("")});
    }
  }
}

void add_phase(std::vector<PhaseSpan>& phases, const std::string& name, int64_t step) {
  if (phases.empty() || phases.back().name != name) phases.push_back({name, step, step});
  phases.back().last_step = step;
}

RunTable table_of(const Json& table, int64_t step) {
  RunTable read = {.step = step, .time = table.value("time", ""), .rows = {}};
  for (const Json& row : table.at("rows")) {
    read.rows.emplace_back(row.at(0).get<std::string>(), row.at(1).get<std::string>());
  }
  return read;
}

void add_start(RunHistory& run, const Json& start, int64_t step) {
  run.starts.push_back(table_of(start, step));
  const Json expected = start.value("expected_seconds", Json::object());
  run.expected_dense_seconds = expected.value("dense", 0.0);
  run.expected_compressed_seconds = expected.value("compressed", 0.0);
}

void add_line(RunHistory& run, const Json& line) {
  const auto step = line.at("step").get<int64_t>();
  if (line.contains("start")) return add_start(run, line.at("start"), step);
  if (line.contains("end")) return run.ends.push_back(table_of(line.at("end"), step));
  if (line.contains("phase")) {
    add_phase(run.phases, line.at("phase").get<std::string>(), step);
    add_numbers(run.training, line, "", static_cast<double>(step));
    run.last_step = std::max(run.last_step, step);
    return;
  }
  for (const auto& [key, value] : line.items()) {
    if (value.is_object()) add_numbers(run.evaluations, value, key, static_cast<double>(step));
  }
}

void read_lines(RunHistory& run, const Path& path) {
  const std::string text = read_file(path);
  size_t number = 1;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    if (line.empty()) continue;
    try {
      add_line(run, Json::parse(line));
    } catch (const Json::exception&) {
      const char* reason = begin > text.size() ? "cut short, as by a kill" : "not a metrics object";
      run.damage.push_back(fmt::format("metrics.jsonl, line {}: {}", number, reason));
    }
  }
}

void read_recipe(RunHistory& run, const Path& folder) {
  if (std::filesystem::exists(folder / "recipe.json")) {
    run.recipe = read_file(folder / "recipe.json");
  }
  const Path resolved = folder / "recipe.resolved.json";
  if (!std::filesystem::exists(resolved)) return;
  const Json recipe = Json::parse(read_file(resolved), nullptr, false);
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
  const Path metrics = folder / "metrics.jsonl";
  require(std::filesystem::exists(metrics),
          "{}: no metrics.jsonl here; give the folder of a run (--output of the command that "
          "trained), not of a checkpoint or a model",
          folder.string());
  RunHistory run;
  const Path whole = std::filesystem::absolute(folder).lexically_normal();
  run.name = (whole.filename().empty() ? whole.parent_path() : whole).filename().string();
  run.folder = folder.string();
  read_lines(run, metrics);
  read_recipe(run, folder);
  return run;
}

std::string data_of(const std::string& key) {
  const size_t first = key.find('.'), last = key.rfind('.');
  return first == last ? "" : key.substr(first + 1, last - first - 1);
}

const Series* find(const std::map<std::string, Series>& among, const std::string& key) {
  const auto found = among.find(key);
  return found == among.end() ? nullptr : &found->second;
}

}  // namespace onebit::report
