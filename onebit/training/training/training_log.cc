#include "onebit/training/training/training_log.h"

#include <unistd.h>

#include <array>
#include <cmath>
#include <ctime>
#include <map>

#include "onebit/ground/base/json.h"
#include "onebit/ground/base/run_files.h"
#include "onebit/ground/metrics/curve_plot.h"
#include "onebit/ground/metrics/meters.h"
#include "onebit/ground/metrics/metric.h"
#include "onebit/ground/metrics/progress_line.h"
#include "onebit/ground/metrics/tensorboard.h"

namespace onebit::training {

namespace log_line = metrics::log_line;

namespace {

constexpr double kSecondsBetweenLines = 10;
constexpr size_t kStepsInRate = 20;

std::vector<metrics::Scalar> scalars_of(const StepRecord& record) {
  const engine::StepOutcome& outcome = record.outcome;
  std::vector<metrics::Scalar> scalars = {
      {"Train/loss", record.loss},
      {"Train/lr", outcome.learning_rate},
      {"Train/gradient_norm", outcome.gradient_norm},
      {"Train/loss_scale", outcome.loss_scale},
      {"Train/samples_per_second",
       static_cast<double>(record.step_samples) / std::max(record.seconds, 1e-9)},
      {"Train/wire_bytes", static_cast<double>(outcome.wire_bytes)}};
  for (const metrics::Metric& metric : record.metrics) {
    scalars.push_back({"Train/" + metric.name, metric.value});
  }
  return scalars;
}

// ISO 8601.
std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

// NaN as long as no value was finite. The progress line then leaves it out.
double shown(const metrics::RunningAverage& average) {
  return average.not_finite() > 0 && average.average() == 0 ? std::nan("") : average.average();
}

// The metrics of a step under their names, each with its average over the last steps.
class RunningMetrics {
 public:
  void add(const std::vector<metrics::Metric>& metrics) {
    latest_ = metrics;
    for (metrics::Metric& metric : latest_) {
      metrics::RunningAverage& average =
          averages_.try_emplace(metric.name, static_cast<double>(kStepsInRate)).first->second;
      average.add(metric.value);
      metric.value = shown(average);
    }
  }
  const std::vector<metrics::Metric>& latest() const { return latest_; }

 private:
  std::map<std::string, metrics::RunningAverage> averages_;
  std::vector<metrics::Metric> latest_;
};

}  // namespace

struct TrainingLog::Files {
  metrics::JsonLinesWriter lines;
  std::unique_ptr<metrics::TensorBoardWriter> events;
  metrics::ProgressLine progress{STDERR_FILENO, kSecondsBetweenLines};
  metrics::RunningAverage loss{kStepsInRate};
  RunningMetrics averages;
  metrics::Curve training, validation;
  metrics::Rate samples{kStepsInRate}, tokens{kStepsInRate}, steps{kStepsInRate};
};

TrainingLog::TrainingLog(const Path& output, const LogOptions& options) : options_(options) {
  if (options.part == LogPart::kNone) return;
  files_.reset(  // NOLINT(modernize-make-unique): an aggregate has no constructor
      new Files{.lines = {output / run_files::kMetrics, options.resumed_step}, .events = nullptr});
  files_->training.name = "training " + options.drawn.title;
  files_->validation.name = "held-out " + options.drawn.title;
  const TensorBoardConfig& events = options.tensorboard;
  const bool is_elsewhere = !events.folder.empty();
  // All hosts may share a folder that the user has chosen.
  if (!events.enabled || (is_elsewhere && !prints())) return;
  const Path folder = is_elsewhere ? Path(events.folder) : output / run_files::kTensorBoard;
  files_->events = std::make_unique<metrics::TensorBoardWriter>(folder, options.resumed_step);
}

TrainingLog::~TrainingLog() = default;

std::string_view TrainingLog::name_of(optim::Phase phase) const {
  if (phase != optim::Phase::kCompressed) return optim::name_of(phase);
  return alone() ? "uncompressed" : log_line::kCompressedPhase;
}

Json TrainingLog::json_of(const StepRecord& record) const {
  const engine::StepOutcome& outcome = record.outcome;
  const double seconds = std::max(record.seconds, 1e-9);
  Json json = log_line::begun(log_line::Kind::kStep, outcome.step);
  json[log_line::kSamples] = record.samples;
  json[log_line::kLoss] = record.loss;
  json[log_line::kMetrics] = Json::object();
  for (const metrics::Metric& metric : record.metrics) {
    json[log_line::kMetrics][metric.name] = metrics::value_in_json(metric);
  }
  json.update({{log_line::kLearningRate, outcome.learning_rate},
               {log_line::kGradientNorm, outcome.gradient_norm},
               {log_line::kClipCoefficient, outcome.clip_coefficient},
               {log_line::kSamplesPerSecond, static_cast<double>(record.step_samples) / seconds},
               {"tokens_per_second", static_cast<double>(record.step_tokens) / seconds},
               {log_line::kPhase, name_of(outcome.phase)},
               {log_line::kSkippedSteps, outcome.skipped_steps},
               {log_line::kLossScale, outcome.loss_scale},
               {log_line::kWireBytes, outcome.wire_bytes},
               {"wire_bytes_inside_node", outcome.wire_bytes_inside_node},
               {log_line::kWireBytesDense16, outcome.wire_bytes_dense16}});
  if (outcome.phase == optim::Phase::kCompressed) {
    json["sent_norm"] = outcome.sent_norm;
    json[log_line::kResidualOverSent] =
        outcome.sent_norm > 0 ? outcome.residual_norm / outcome.sent_norm : 0.0;
    json["still_elements"] = outcome.still_elements;
    json["woken_elements"] = outcome.woken_elements;
  }
  if (outcome.watch) {
    json["watch"] = {{"largest_update_over_rate", outcome.watch->largest_update},
                     {"updated_tensor", outcome.watch->updated_tensor},
                     {"largest_value", outcome.watch->largest_value},
                     {"largest_tensor", outcome.watch->largest_tensor}};
    if (outcome.adam) {
      json["watch"]["distance_over_adam"] = outcome.adam->distance;
      json["watch"]["cosine_with_adam"] = outcome.adam->cosine;
    }
  }
  json[log_line::kSeconds] = {{log_line::seconds::kStep, record.seconds},
                              {log_line::seconds::kData, record.data_seconds},
                              {log_line::seconds::kForward, record.forward_seconds},
                              {log_line::seconds::kBackward, record.backward_seconds},
                              {log_line::seconds::kCompress, outcome.compress_seconds},
                              {log_line::seconds::kWait, outcome.wait_seconds},
                              {log_line::seconds::kOptimizer, outcome.update_seconds}};
  return json;
}

void TrainingLog::step(const StepRecord& record) {
  const engine::StepOutcome& outcome = record.outcome;
  const bool compressed = outcome.phase == optim::Phase::kCompressed && !alone();
  totals_.steps += 1;
  totals_.samples += record.step_samples;
  totals_.tokens += record.step_tokens;
  totals_.wire_bytes += outcome.wire_bytes;
  totals_.inside_bytes += outcome.wire_bytes_inside_node;
  totals_.wire_bytes_dense16 += outcome.wire_bytes_dense16;
  totals_.watch_bytes += outcome.watch_bytes;
  if (compressed) {
    totals_.compressed_steps += 1;
    totals_.compressed_wire_bytes += outcome.wire_bytes;
    totals_.compressed_inside_bytes += outcome.wire_bytes_inside_node;
    totals_.compressed_dense16 += outcome.wire_bytes_dense16;
  }
  (compressed ? totals_.compressed_step : totals_.dense_step).add(record.seconds);
  totals_.seconds += record.seconds;
  totals_.data_seconds += record.data_seconds;
  totals_.forward_seconds += record.forward_seconds;
  totals_.backward_seconds += record.backward_seconds;
  totals_.compress_seconds += outcome.compress_seconds;
  totals_.wait_seconds += outcome.wait_seconds;
  totals_.optimizer_seconds += outcome.update_seconds;
  // A skipped step has the number of the step before it, so only updates are logged.
  if (outcome.applied && (files_ || options_.on_line)) report(json_of(record));
  if (!files_) return;
  if (outcome.applied && files_->events) {
    files_->events->scalars(outcome.step, scalars_of(record));
  }
  if (!prints()) return;
  if (outcome.froze_now) {
    files_->progress.note(
        fmt::format("step {}: the warm-up of the optimizer has ended, {}", outcome.step,
                    alone() ? "one rank has nothing to send and compresses nothing"
                            : "gradients are compressed from here on"));
  }
  files_->training.points.emplace_back(
      outcome.step, options_.drawn.name == "loss"
                        ? record.loss
                        : metrics::value_of(record.metrics, options_.drawn.name));
  print(record);
}

void TrainingLog::report(const Json& line) {
  if (files_) files_->lines.write(line);
  if (options_.on_line) options_.on_line(line);
}

std::string TrainingLog::curves() const {
  if (!files_ || !prints() || files_->training.points.empty()) return "";
  std::vector<metrics::Curve> curves = {files_->training};
  if (!files_->validation.points.empty()) curves.push_back(files_->validation);
  return metrics::draw_curves(curves, {.color = isatty(STDERR_FILENO) != 0});
}

void TrainingLog::print(const StepRecord& record) {
  Files& files = *files_;
  files.loss.add(record.loss);
  files.averages.add(record.metrics);
  files.samples.add(static_cast<double>(record.step_samples), record.seconds);
  files.tokens.add(static_cast<double>(record.step_tokens), record.seconds);
  files.steps.add(1, record.seconds);
  if (!files.progress.is_due()) return;
  const engine::StepOutcome& outcome = record.outcome;
  files.progress.update({.step = outcome.step,
                         .total_steps = options_.total_steps,
                         .loss = files.loss.average(),
                         .metrics = files.averages.latest(),
                         .learning_rate = outcome.learning_rate,
                         .samples_per_second = files.samples.per_second(),
                         .tokens_per_second = files.tokens.per_second(),
                         .seconds_left = static_cast<double>(options_.total_steps - outcome.step) /
                                         std::max(files.steps.per_second(), 1e-9),
                         .phase = name_of(outcome.phase)});
}

void TrainingLog::evaluated(int64_t step, int64_t samples, const Evaluation& evaluation) {
  if (!files_ && !options_.on_line) return;
  Json json;
  std::vector<metrics::Scalar> scalars;
  for (const metrics::Metric& metric : evaluation.metrics) {
    if (files_ && metric.name == options_.drawn.name)
      files_->validation.points.emplace_back(step, metric.value);
    const size_t under = metric.name.find('/');
    Json& place = under == std::string::npos
                      ? json[metric.name]
                      : json[metric.name.substr(0, under)][metric.name.substr(under + 1)];
    place = metrics::value_in_json(metric);
    if (!metric.is_count) scalars.push_back({"Validation/" + metric.name, metric.value});
  }
  Json line = log_line::begun(log_line::Kind::kEvaluation, step);
  line[log_line::kSamples] = samples;
  line[evaluation.key] = std::move(json);
  report(line);
  if (!files_) return;
  if (files_->events) files_->events->scalars(step, scalars);
  if (prints()) files_->progress.note(fmt::format("step {}: {}", step, evaluation.line));
}

void TrainingLog::table(log_line::Kind kind, int64_t step, const Rows& rows, const Json& more) {
  if (!files_) return;
  Json line = log_line::begun(kind, step);
  line[log_line::kTime] = utc_now();
  line[log_line::kRows] = rows;
  line.update(more);
  files_->lines.write(line);
}

void TrainingLog::finish() {
  if (prints()) files_->progress.finish();
}

}  // namespace onebit::training
