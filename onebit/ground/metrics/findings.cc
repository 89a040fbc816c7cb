#include "onebit/ground/metrics/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "onebit/ground/metrics/human.h"
#include "onebit/ground/metrics/log_line.h"
#include "onebit/ground/metrics/meters.h"

namespace onebit::metrics {

namespace {

using Findings = std::vector<Finding>;

void warn(Findings& findings, std::string text) {
  findings.push_back({Severity::kWarning, std::move(text)});
}

void note(Findings& findings, std::string text) {
  findings.push_back({Severity::kNote, std::move(text)});
}

bool is_in(const std::vector<PhaseSpan>& phases, double step, bool compressed) {
  for (const PhaseSpan& phase : phases) {
    if (step >= static_cast<double>(phase.first_step) &&
        step <= static_cast<double>(phase.last_step)) {
      return (phase.name == log_line::kCompressedPhase) == compressed;
    }
  }
  return false;
}

// The seconds of a part of every step, or null.
const Series* seconds_of(const RunHistory& run, const char* part) {
  return find(run.training, nested(log_line::kSeconds, part));
}

double sum(const Series& series) {
  double total = 0;
  for (const Point& point : series) total += std::isfinite(point.value) ? point.value : 0;
  return total;
}

double mean(const Series& series, size_t begin, size_t end) {
  double total = 0;
  for (size_t i = begin; i < end; ++i) total += series[i].value;
  return end > begin ? total / static_cast<double>(end - begin) : 0;
}

void check_end(Findings& findings, const RunHistory& run) {
  for (const std::string& line : run.damage) {
    warn(findings, fmt::format("{}. The line is left out of this report.", line));
  }
  if (run.last_step == 0) {
    warn(findings, "No training step was recorded.");
    return;
  }
  if (run.wanted_steps && run.last_step < *run.wanted_steps) {
    warn(findings, fmt::format("The run is at step {} of {}. If it is not training now, continue "
                               "it with the same command and --resume.",
                               run.last_step, *run.wanted_steps));
  }
  if (run.starts.size() > 1) {
    note(findings,
         fmt::format("The run was resumed {}: from step {}.",
                     run.starts.size() == 2 ? std::string("once")
                                            : fmt::format("{} times", run.starts.size() - 1),
                     [&] {
                       std::string steps;
                       for (size_t i = 1; i < run.starts.size(); ++i) {
                         steps += fmt::format("{}{}", i > 1 ? ", " : "", run.starts[i].step);
                       }
                       return steps;
                     }()));
  }
}

void check_loss(Findings& findings, const RunHistory& run) {
  const Series* loss = find(run.training, log_line::kLoss);
  if (loss == nullptr) return;
  const auto broken = std::find_if(loss->begin(), loss->end(),
                                   [](const Point& point) { return !std::isfinite(point.value); });
  if (broken != loss->end()) {
    warn(findings, fmt::format("The loss is not a finite number from step {:.0f} on: lower the "
                               "learning rate, lengthen its warm-up, or clip the gradient "
                               "(gradient_clipping).",
                               broken->step));
    return;
  }
  const std::optional<Rise> rise = find_rise(*loss);
  if (!rise) return;
  warn(findings,
       fmt::format("The loss rose from {:.3f} about step {:.0f} to {:.3f} at the end, {:.1f} times "
                   "the standard error of the difference: training has become unstable, or the "
                   "data has changed. A lower learning rate from an earlier checkpoint (--resume "
                   "TAG) is the first thing to try.",
                   rise->least, rise->least_step, rise->end, rise->errors));
}

// A run that keeps its best model has lost nothing by going on, so this is a note. The loss says
// nothing about a run that is kept by another metric.
void note_kept_best(Findings& findings, const RunHistory& run) {
  const KeptBest& kept = *run.kept_best;
  for (const auto& [name, series] : run.evaluations) {
    if (!name.ends_with("." + kept.metric)) continue;
    if (!data_of(name).empty() || series.size() < 3) continue;
    const auto best =
        std::min_element(series.begin(), series.end(), [&](const Point& a, const Point& b) {
          return kept.smaller_is_better ? a.value < b.value : a.value > b.value;
        });
    const double lost = std::abs(series.back().value - best->value);
    if (!(lost > 0.05 * std::abs(best->value))) continue;
    note(findings, fmt::format("{} was best at step {:.0f} ({:.4f}) and ends at {:.4f}. The run's "
                               "folder contains the best model; fewer steps or a lower learning "
                               "rate would have sufficed.",
                               name, best->step, best->value, series.back().value));
  }
}

// Whether the model got worse on held-out data during training.
void check_held_out(Findings& findings, const RunHistory& run) {
  if (run.kept_best) {
    note_kept_best(findings, run);
    return;
  }
  for (const auto& [name, series] : run.evaluations) {
    if (!name.ends_with("loss") || !data_of(name).empty() || series.size() < 3) continue;
    const auto best =
        std::min_element(series.begin(), series.end(),
                         [](const Point& a, const Point& b) { return a.value < b.value; });
    const Point& last = series.back();
    if (last.value > 1.01 * best->value) {
      warn(findings,
           fmt::format("{} was best at step {:.0f} ({:.4f}) and ends at {:.4f}: the model "
                       "overfits its training text. More text, more dropout or fewer steps help; "
                       "take the checkpoint next to the best step if it is still there.",
                       name, best->step, best->value, last.value));
    }
  }
}

// Whether the model forgot held-out text that is not from its training data.
void check_forgotten(Findings& findings, const RunHistory& run) {
  constexpr double kNoticed = 0.05;
  for (const auto& [name, series] : run.evaluations) {
    if (!name.ends_with(".mlm_loss") || data_of(name).empty() || series.size() < 2) continue;
    const double before = series.front().value, after = series.back().value;
    if (!(after > before + kNoticed)) continue;
    note(
        findings,
        fmt::format("The model has forgotten some of {}: its held-out MLM loss rose from {:.4f} to "
                    "{:.4f}. Some of that text among the training data (--data FOLDER=WEIGHT), a "
                    "lower learning rate or fewer steps keep more of it.",
                    data_of(name), before, after));
  }
}

// Without fp16 the scale is 1 in every step.
bool has_loss_scale(const RunHistory& run) {
  const Series* scale = find(run.training, log_line::kLossScale);
  return scale != nullptr && std::any_of(scale->begin(), scale->end(),
                                         [](const Point& point) { return point.value != 1; });
}

void check_skipped(Findings& findings, const RunHistory& run) {
  const Series* skipped = find(run.training, log_line::kSkippedSteps);
  if (skipped == nullptr || skipped->empty() || run.last_step == 0) return;
  const double count = skipped->back().value;
  if (count > 0.01 * static_cast<double>(run.last_step)) {
    const char* cause = has_loss_scale(run) ? "overflowed in fp16: bf16 needs no loss scale"
                                            : "was infinite or not a number: a lower learning rate "
                                              "or gradient_clipping help, or the "
                                              "data have a fault";
    warn(findings, fmt::format("{:.0f} steps were skipped ({:.1f} % of all) because a gradient {}.",
                               count, 100 * count / static_cast<double>(run.last_step), cause));
  }
}

void check_waits(Findings& findings, const RunHistory& run) {
  const Series* step = seconds_of(run, log_line::seconds::kStep);
  if (step == nullptr) return;
  const double total = sum(*step);
  if (total <= 0) return;
  if (const Series* data = seconds_of(run, log_line::seconds::kData); data != nullptr) {
    const double share = 100 * sum(*data) / total;
    if (share > 5) {
      warn(findings, fmt::format("{:.0f} % of the time was spent waiting for batches: the disk, or "
                                 "the processors that build them, are too slow for the model.",
                                 share));
    }
  }
  if (const Series* wait = seconds_of(run, log_line::seconds::kWait); wait != nullptr) {
    const double share = 100 * sum(*wait) / total;
    if (share > 10) {
      warn(findings, fmt::format("{:.0f} % of the time was spent waiting for the exchange between "
                                 "ranks. Ranks that share processors wait for each other; over a "
                                 "network, an earlier freeze, a larger batch or more accumulation "
                                 "send less per sample (docs/network.md).",
                                 share));
    }
  }
}

void check_expected(Findings& findings, const RunHistory& run) {
  const auto compare = [&](const char* what, double measured, double expected) {
    if (measured <= 0 || expected <= 0) return;
    const double off = 100 * (measured / expected - 1);
    if (off < 25) return;
    warn(findings,
         fmt::format("A {} step took {}, {:.0f} % more than the {} that was expected at the start: "
                     "other programs on these machines, a busy network, or heat.",
                     what, human_duration(measured), off, human_duration(expected)));
  };
  compare("dense", median_step_seconds(run, false), run.expected_dense_seconds);
  compare("compressed", median_step_seconds(run, true), run.expected_compressed_seconds);
}

// Compares steps of the same phase only, since a freeze changes the throughput at once.
void check_throughput(Findings& findings, const RunHistory& run) {
  const Series* rate = find(run.training, log_line::kSamplesPerSecond);
  if (rate == nullptr || run.phases.empty()) return;
  const PhaseSpan& last = run.phases.back();
  Series here;
  std::copy_if(rate->begin(), rate->end(), std::back_inserter(here), [&](const Point& point) {
    return point.step >= static_cast<double>(last.first_step);
  });
  if (here.size() < 200) return;
  const size_t tenth = here.size() / 10;
  const double before = mean(here, tenth, 2 * tenth);
  const double after = mean(here, here.size() - tenth, here.size());
  if (before > 0 && after < 0.8 * before) {
    warn(findings, fmt::format("Throughput fell from {:.4g} to {:.4g} samples/s in the {} phase.",
                               before, after, last.name));
  }
}

void check_compression(Findings& findings, const RunHistory& run) {
  const Series* residual = find(run.training, log_line::kResidualOverSent);
  if (residual == nullptr || residual->size() < 200) return;
  const size_t tenth = residual->size() / 10;
  const double early = mean(*residual, tenth, 2 * tenth);
  const double late = mean(*residual, residual->size() - tenth, residual->size());
  if (late > 3 && late > 2 * early) {
    warn(findings,
         fmt::format(
             "The residual (what compression left out) grew from {:.1f} to {:.1f} times what "
             "is sent: error feedback falls behind. A later freeze or a larger "
             "batch helps.",
             early, late));
  }
}

void check_clipping(Findings& findings, const RunHistory& run) {
  const Series* clip = find(run.training, log_line::kClipCoefficient);
  if (clip == nullptr || clip->size() < 100) return;
  const auto clipped =
      std::count_if(clip->begin(), clip->end(), [](const Point& point) { return point.value < 1; });
  const double share = 100 * static_cast<double>(clipped) / static_cast<double>(clip->size());
  if (share > 50) {
    note(findings, fmt::format("The gradient was clipped in {:.0f} % of the steps, to {:.2g} of "
                               "its length on average.",
                               share, mean(*clip, 0, clip->size())));
  }
}

}  // namespace

double median_step_seconds(const RunHistory& run, bool compressed) {
  const Series* seconds = seconds_of(run, log_line::seconds::kStep);
  if (seconds == nullptr) return 0;
  Median median;
  for (const Point& point : *seconds) {
    if (is_in(run.phases, point.step, compressed)) median.add(point.value);
  }
  return median.median();
}

std::vector<Finding> find_problems(const RunHistory& run) {
  Findings findings;
  for (const auto& check :
       {check_end, check_loss, check_held_out, check_forgotten, check_skipped, check_waits,
        check_expected, check_throughput, check_compression, check_clipping}) {
    check(findings, run);
  }
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return findings;
}

namespace {

constexpr size_t kLeastPoints = 200, kLeastInPart = 10;
constexpr double kLeastRise = 0.1, kLeastErrors = 4;

struct Moments {
  double mean = 0, variance = 0;
};

Moments moments_of(const Series& series, size_t begin, size_t end) {
  const auto count = static_cast<double>(end - begin);
  Moments found;
  for (size_t i = begin; i < end; ++i) found.mean += series[i].value / count;
  for (size_t i = begin; i < end; ++i) {
    const double off = series[i].value - found.mean;
    found.variance += off * off / (count - 1);
  }
  return found;
}

// The noise of a mean is taken from all parts, since the part with the least mean has the least
// variance as well. A divergence with a larger variance of its own counts that one.
std::optional<Rise> rise_over(const Series& series, size_t parts) {
  const size_t size = series.size() / parts;
  if (size < kLeastInPart) return std::nullopt;
  const size_t first = series.size() - size * parts;
  double pooled = 0;
  Rise rise{.least = INFINITY};
  Moments part;
  for (size_t i = 0; i < parts; ++i) {
    const size_t begin = first + i * size;
    part = moments_of(series, begin, begin + size);
    pooled += part.variance / static_cast<double>(parts);
    if (i + 1 == parts || part.mean >= rise.least) continue;
    rise.least = part.mean;
    rise.least_step = series[begin + size / 2].step;
  }
  rise.end = part.mean;
  const double error =
      std::sqrt((pooled + std::max(pooled, part.variance)) / static_cast<double>(size));
  const double difference = rise.end - rise.least;
  if (!(difference > kLeastRise * std::abs(rise.least) && difference > kLeastErrors * error)) {
    return std::nullopt;
  }
  rise.errors = difference / error;
  return rise;
}

}  // namespace

std::optional<Rise> find_rise(const Series& series) {
  if (series.size() < kLeastPoints) return std::nullopt;
  for (const size_t parts : {20, 10, 6, 4}) {
    if (const auto rise = rise_over(series, parts)) return rise;
  }
  return std::nullopt;
}

}  // namespace onebit::metrics
