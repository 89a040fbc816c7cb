#include "onebit/ground/metrics/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "onebit/ground/base/error.h"
#include "onebit/ground/metrics/chart.h"
#include "onebit/ground/metrics/findings.h"
#include "onebit/ground/metrics/human.h"
#include "onebit/ground/metrics/log_line.h"

namespace onebit::metrics {

namespace {

constexpr int kColours = 8;

constexpr const char* kStyle = R"(
:root{--ink:#1c1c1e;--paper:#fff;--faint:#6b6b70;--rule:#d9d9de;--band:#f2f2f5;--warn:#8a4b00;
--warnpaper:#fff4e0;--c0:#0a6ebd;--c1:#d1495b;--c2:#2a9d6f;--c3:#8a5fbf;--c4:#c77d0a;--c5:#0f8b8d;
--c6:#b0418f;--c7:#6c757d}
@media(prefers-color-scheme:dark){:root{--ink:#ececf0;--paper:#151518;--faint:#a0a0a8;--rule:#3a3a40;
--band:#202026;--warn:#ffcf8a;--warnpaper:#3a2a10;--c0:#5db1f5;--c1:#f27a8a;--c2:#5fd0a2;--c3:#b794e8;
--c4:#f0b04a;--c5:#4cc5c7;--c6:#e07cc3;--c7:#a9b1b8}}
*{box-sizing:border-box}body{margin:0 auto;padding:1rem;max-width:1180px;background:var(--paper);
color:var(--ink);font:16px/1.5 system-ui,sans-serif}h1{font-size:1.5rem;margin:.2em 0}
h2{font-size:1.2rem;margin:2rem 0 .5rem}h3{font-size:1rem;margin:0 0 .3rem}p{margin:.4em 0}
.faint{color:var(--faint)}.charts{display:grid;gap:1.5rem;
grid-template-columns:repeat(auto-fit,minmax(min(100%,30rem),1fr))}figure{margin:0}
svg{width:100%;height:auto;display:block}svg text{font:12px system-ui,sans-serif;fill:var(--faint)}
.grid{stroke:var(--rule);stroke-width:1}.band{fill:var(--band)}.line{fill:none;stroke-width:1.8;
stroke-linejoin:round}.dashed{stroke-dasharray:6 4}figcaption{font-size:.85rem;color:var(--faint)}
.key{margin-right:1em;white-space:nowrap}.key i{display:inline-block;width:1.4em;height:0;
border-top:3px solid;vertical-align:middle;margin-right:.4em}.key i.dashed{border-top-style:dashed}
.key b{color:var(--ink);font-weight:600}.wide{overflow-x:auto}table{border-collapse:collapse;
font-size:.9rem}th,td{text-align:left;vertical-align:top;padding:.25em .9em .25em 0;
border-bottom:1px solid var(--rule)}th{font-weight:600;white-space:nowrap}td.n{text-align:right;
font-variant-numeric:tabular-nums;white-space:nowrap}tr:first-child th+th{text-align:right}
ul.findings{list-style:none;padding:0}
.findings li{padding:.5em .8em;margin:.4em 0;border-left:4px solid var(--rule);
background:var(--band)}.findings li.warning{border-color:var(--warn);background:var(--warnpaper)}
details{margin:.5em 0}summary{cursor:pointer;font-weight:600}pre{overflow-x:auto;font-size:.85rem;
background:var(--band);padding:.8em}
@media(max-width:40rem){svg text{font-size:17px}th,td.n{white-space:normal}}
)";

std::string colour_rules() {
  std::string text;
  for (int i = 0; i < kColours; ++i) {
    text += fmt::format(
        ".line.c{0}{{stroke:var(--c{0})}}.dot.c{0}{{fill:var(--c{0})}}"
        ".key i.c{0}{{border-color:var(--c{0})}}\n",
        i);
  }
  return text;
}

Series moving_mean(const Series& series, size_t window) {
  Series smooth;
  double sum = 0;
  size_t begin = 0;
  for (size_t i = 0; i < series.size(); ++i) {
    if (!std::isfinite(series[i].value)) {  // restarts after it
      sum = 0;
      begin = i + 1;
      continue;
    }
    sum += series[i].value;
    if (i + 1 - begin > window) sum -= series[begin++].value;
    smooth.push_back({series[i].step, sum / static_cast<double>(i + 1 - begin)});
  }
  return smooth;
}

// A mean over one step in a hundred: the detail that a curve of a few hundred points can show.
Series smoothed(const Series& series) {
  return moving_mean(series, std::max<size_t>(series.size() / 100, 1));
}

// "mlm_accuracy" of "held_out.mlm_accuracy" and of "mlm_accuracy".
std::string bare(const std::string& key) {
  return key.substr(key.rfind('.') + 1);
}

// "mlm_loss" -> "MLM loss", "f1_macro" -> "f1 macro".
std::string words_of(const std::string& name) {
  std::string words = name;
  std::replace(words.begin(), words.end(), '_', ' ');
  for (const char* word : {"mlm", "nsp"}) {
    if (!words.starts_with(word)) continue;
    for (size_t i = 0; i < 3; ++i) words[i] = static_cast<char>(words[i] - 'a' + 'A');
  }
  return words;
}

// "f1_macro" -> "F1 macro".
std::string title_of(const std::string& name) {
  std::string title = words_of(name);
  if (!title.empty() && title[0] >= 'a' && title[0] <= 'z') {
    title[0] = static_cast<char>(title[0] - 'a' + 'A');
  }
  return title;
}

// "held out" of "held_out.mlm_loss", "held out, books" of "held_out.books.mlm_loss".
std::string held_out_name(const std::string& key) {
  const std::string data = data_of(key);
  return data.empty() ? "held out" : "held out, " + data;
}

class Charts {
 public:
  explicit Charts(const std::vector<RunHistory>& runs) : runs_(runs) {}

  std::string text() const {
    std::string all = measured("Loss", log_line::kLoss, log_line::kLoss);
    for (const std::string& metric : task_metrics()) {
      all += measured(title_of(metric), nested(log_line::kMetrics, metric), metric);
    }
    all += of_training("Learning rate", log_line::kLearningRate, "", false);
    all += of_training("Gradient norm", log_line::kGradientNorm, "", true);
    all += of_training("Loss scale", log_line::kLossScale, "", true, true);
    all += of_training("Samples per second", log_line::kSamplesPerSecond, "", false);
    all += of_training("Bytes sent per rank and step", log_line::kWireBytes, "B", true);
    all += parts();
    all += of_training("Residual over what is sent (error feedback)", log_line::kResidualOverSent,
                       "", false);
    return all;
  }

 private:
  std::vector<PhaseSpan> phases() const {
    return runs_.size() == 1 ? runs_.front().phases : std::vector<PhaseSpan>();
  }
  std::string name(const RunHistory& run, const std::string& what) const {
    return runs_.size() == 1 ? what : run.name + ", " + what;
  }
  int colour(size_t run) const { return static_cast<int>(run) % kColours; }

  // Losses and scores that the task measures, in training or on held-out data.
  std::set<std::string> task_metrics() const {
    const std::string prefix = nested(log_line::kMetrics, "");
    std::set<std::string> found;
    for (const RunHistory& run : runs_) {
      for (const auto& [key, series] : run.training) {
        if (key.starts_with(prefix)) found.insert(key.substr(prefix.size()));
      }
      for (const auto& [key, series] : run.evaluations) {
        const std::string metric = bare(key);
        if (metric != log_line::kLoss && metric != log_line::kSeconds) found.insert(metric);
      }
    }
    return found;
  }

  // The values of one metric in training (key `in_training`) and on all held-out data.
  std::string measured(const std::string& title, const std::string& in_training,
                       const std::string& metric) const {
    Chart chart = {.title = title, .unit = "", .lines = {}, .phases = phases()};
    int next = 1;  // colour of held-out values of a single run
    for (size_t i = 0; i < runs_.size(); ++i) {
      const RunHistory& run = runs_[i];
      if (const Series* series = find(run.training, in_training); series != nullptr) {
        chart.lines.push_back(
            {.name = name(run, "training"), .points = smoothed(*series), .colour = colour(i)});
      }
      for (const auto& [key, series] : run.evaluations) {
        if (bare(key) != metric) continue;
        chart.lines.push_back({.name = name(run, held_out_name(key)),
                               .points = series,
                               .colour = runs_.size() == 1 ? next++ % kColours : colour(i),
                               .dashed = true,
                               .dots = true});
      }
    }
    return draw(chart);
  }

  std::string of_training(const std::string& title, const std::string& key, const std::string& unit,
                          bool logarithmic, bool only_if_it_changes = false) const {
    Chart chart = {.title = title,
                   .unit = unit,
                   .lines = {},
                   .phases = phases(),
                   .from_zero = !logarithmic,
                   .logarithmic = logarithmic};
    bool changes = false;
    for (size_t i = 0; i < runs_.size(); ++i) {
      const Series* series = find(runs_[i].training, key);
      if (series == nullptr) continue;
      changes = changes || std::any_of(series->begin(), series->end(), [&](const Point& point) {
                  return point.value != series->front().value;
                });
      // A mean would blur the jump of bytes at the freeze.
      chart.lines.push_back({.name = name(runs_[i], "training"),
                             .points = key == log_line::kWireBytes ? *series : smoothed(*series),
                             .colour = colour(i)});
    }
    return only_if_it_changes && !changes ? "" : draw(chart);
  }

  // The parts of the time of a step. A page of several runs has only the whole step.
  std::string parts() const {
    if (runs_.size() != 1) {
      return of_training("Seconds per step", nested(log_line::kSeconds, log_line::seconds::kStep),
                         "s", false);
    }
    Chart chart = {.title = "Where the time of a step goes",
                   .unit = "s",
                   .lines = {},
                   .phases = phases(),
                   .from_zero = true};
    int next = 0;
    for (const char* part :
         {log_line::seconds::kStep, log_line::seconds::kForward, log_line::seconds::kBackward,
          log_line::seconds::kCompress, log_line::seconds::kWait, log_line::seconds::kData,
          log_line::seconds::kOptimizer}) {
      const Series* series = find(runs_[0].training, nested(log_line::kSeconds, part));
      const int drawn = next++;
      if (series == nullptr) continue;
      chart.lines.push_back({.name = part, .points = smoothed(*series), .colour = drawn});
    }
    return draw(chart);
  }

  const std::vector<RunHistory>& runs_;
};

std::string table(const std::vector<std::pair<std::string, std::string>>& rows) {
  std::string text = "<div class=\"wide\"><table>";
  for (const auto& [name, value] : rows) {
    text += fmt::format("<tr><th>{}</th><td>{}</td></tr>", escape_html(name), escape_html(value));
  }
  return text + "</table></div>\n";
}

std::string findings(const RunHistory& run) {
  const std::vector<Finding> found = find_problems(run);
  if (found.empty()) return "<p>No problems found.</p>\n";
  std::string text = "<ul class=\"findings\">";
  for (const Finding& finding : found) {
    text += fmt::format("<li class=\"{}\">{}</li>",
                        finding.severity == Severity::kWarning ? "warning" : "note",
                        escape_html(finding.text));
  }
  return text + "</ul>\n";
}

double last_finite(const Series& series) {
  for (auto point = series.rbegin(); point != series.rend(); ++point) {
    if (std::isfinite(point->value)) return point->value;
  }
  return std::nan("");
}

double total(const RunHistory& run, const std::string& key) {
  double sum = 0;
  if (const Series* series = find(run.training, key); series != nullptr) {
    for (const Point& point : *series) sum += std::isfinite(point.value) ? point.value : 0;
  }
  return sum;
}

std::string step_against_expectation(double measured, double expected) {
  if (measured <= 0) return "-";
  if (expected <= 0) return human_duration(measured);
  return fmt::format("{} (expected {}, {:+.0f} %)", human_duration(measured),
                     human_duration(expected), 100 * (measured / expected - 1));
}

// The figures by which runs are compared, in the order of the rows.
std::vector<std::pair<std::string, std::string>> figures(const RunHistory& run) {
  std::vector<std::pair<std::string, std::string>> rows = {
      {"steps", run.wanted_steps ? fmt::format("{} of {}", run.last_step, *run.wanted_steps)
                                 : fmt::format("{}", run.last_step)},
      {"time in training steps",
       human_duration(total(run, nested(log_line::kSeconds, log_line::seconds::kStep)))},
      {"dense step",
       step_against_expectation(median_step_seconds(run, false), run.expected_dense_seconds)},
      {"compressed step",
       step_against_expectation(median_step_seconds(run, true), run.expected_compressed_seconds)},
      {"bytes sent per rank", human_bytes(total(run, log_line::kWireBytes))},
      {"a 16-bit all-reduce would send", human_bytes(total(run, log_line::kWireBytesDense16))}};
  for (const auto& [key, series] : run.evaluations) {
    rows.emplace_back(words_of(bare(key)) + ", " + held_out_name(key),
                      fmt::format("{:.4f}", last_finite(series)));
  }
  return rows;
}

std::string comparison(const std::vector<RunHistory>& runs) {
  std::vector<std::string> names;  // of rows, in the order of first occurrence
  std::vector<std::map<std::string, std::string>> columns;
  for (const RunHistory& run : runs) {
    columns.emplace_back();
    for (const auto& [name, value] : figures(run)) {
      columns.back()[name] = value;
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  std::string text = "<div class=\"wide\"><table><tr><th></th>";
  for (const RunHistory& run : runs) text += fmt::format("<th>{}</th>", escape_html(run.name));
  text += "</tr>";
  for (const std::string& name : names) {
    text += fmt::format("<tr><th>{}</th>", escape_html(name));
    for (const auto& column : columns) {
      const auto found = column.find(name);
      text += fmt::format("<td class=\"n\">{}</td>",
                          found == column.end() ? "-" : escape_html(found->second));
    }
    text += "</tr>";
  }
  return text + "</table></div>\n";
}

std::string tables_of(const RunHistory& run) {
  std::string text;
  const auto add = [&](const char* what, const std::vector<RunTable>& tables) {
    for (const RunTable& one : tables) {
      const bool last = &one == &tables.back();
      text += fmt::format("<details{}><summary>{} at step {}{}</summary>{}</details>\n",
                          last ? " open" : "", what, one.step,
                          one.time.empty() ? "" : ", " + escape_html(one.time), table(one.rows));
    }
  };
  add("Start", run.starts);
  add("End", run.ends);
  if (text.empty()) {
    text = "<p class=\"faint\">The run recorded no table of its start or end.</p>\n";
  }
  return text;
}

std::string section_of(const RunHistory& run, bool alone) {
  std::string text;
  if (!alone) text += fmt::format("<h2>{}</h2>\n", escape_html(run.name));
  text += fmt::format("<p class=\"faint\">{}</p>\n", escape_html(run.folder));
  text += findings(run);
  if (alone) text += "<h2>In figures</h2>\n" + table(figures(run));
  return text;
}

}  // namespace

std::string html_page(const std::vector<RunHistory>& runs) {
  require(!runs.empty(), "report: name at least one run");
  const bool alone = runs.size() == 1;
  std::string names;
  for (const RunHistory& run : runs) names += (names.empty() ? "" : ", ") + run.name;
  std::string text = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
      "<title>{}</title>\n<style>{}{}</style></head><body>\n<h1>{}</h1>\n",
      escape_html(names), kStyle, colour_rules(), escape_html(names));
  if (alone) text += section_of(runs.front(), true);
  if (!alone) text += "<h2>Compared</h2>\n" + comparison(runs);
  const std::string charts = Charts(runs).text();
  text += "<h2>Curves</h2>\n";
  text += charts.empty() ? "<p class=\"faint\">There is nothing to draw yet.</p>\n"
                         : "<p class=\"faint\">The horizontal axis is the step. A bold number "
                           "is the last value of its curve.</p>\n<div class=\"charts\">\n" +
                               charts + "</div>\n";
  for (const RunHistory& run : runs) {
    if (!alone) text += section_of(run, false);
    if (alone) text += "<h2>Start and end</h2>\n";
    text += tables_of(run);
    if (!run.recipe.empty()) {
      text += fmt::format("<details><summary>Recipe</summary><pre>{}</pre></details>\n",
                          escape_html(run.recipe));
    }
  }
  return text + "</body></html>\n";
}

}  // namespace onebit::metrics
