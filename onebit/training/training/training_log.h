// The log of a run: progress line, metrics.jsonl and TensorBoard events. Rank 0 writes it. If hosts
// have separate disks, one rank per disk writes the files.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/exchange/engine/engine.h"
#include "onebit/ground/metrics/log_line.h"
#include "onebit/ground/metrics/meters.h"
#include "onebit/ground/metrics/metric.h"
#include "onebit/training/training/evaluation.h"
#include "onebit/training/training/session_config.h"
#include "onebit/training/training/table_rows.h"

namespace onebit::training {

// One step. Some members are sums over all ranks.
struct StepRecord {
  engine::StepOutcome outcome;
  int64_t samples = 0;                   // consumed since the beginning of the run
  int64_t step_samples = 0;              // of this step, all ranks
  int64_t step_tokens = 0;               // all ranks
  double loss = 0;                       // all ranks
  std::vector<metrics::Metric> metrics;  // of the task, all ranks: mlm_loss, ...
  double seconds = 0;                    // of the step
  double data_seconds = 0;               // waiting for batches
  double forward_seconds = 0, backward_seconds = 0;
};

// Sums over the steps of one session, for the table at the end.
struct TrainingTotals {
  int64_t steps = 0, samples = 0, tokens = 0;
  // Bytes sent, of these the bytes sent inside a node, and the bytes that a 16-bit all-reduce would
  // send.
  int64_t wire_bytes = 0, inside_bytes = 0, wire_bytes_dense16 = 0;
  int64_t watch_bytes = 0;  // sent for run.watch_adam, not included in the above
  int64_t compressed_steps = 0, compressed_wire_bytes = 0, compressed_inside_bytes = 0,
          compressed_dense16 = 0;
  double seconds = 0, data_seconds = 0, forward_seconds = 0, backward_seconds = 0;
  double compress_seconds = 0, wait_seconds = 0, optimizer_seconds = 0;
  metrics::Median dense_step, compressed_step;  // seconds per step
};

enum class LogPart {
  kNone,
  kFiles,  // only the files in the run's folder
  kAll
};

struct LogOptions {
  LogPart part = LogPart::kAll;
  TensorBoardConfig tensorboard = {};
  DrawnMetric drawn = {};
  int64_t total_steps = 0;
  int64_t resumed_step = metrics::kNoStep;  // lines and events of later steps are dropped
  int world_size = 1;
  std::function<void(const Json& line)> on_line = {};  // RunHost::on_line
};

class TrainingLog {
 public:
  // Appends to the files in `output`.
  TrainingLog(const Path& output, const LogOptions& options);
  ~TrainingLog();

  void step(const StepRecord& record);
  void evaluated(int64_t step, int64_t samples, const Evaluation& evaluation);
  // Logs a table of the run, of kind kStart or kEnd, with the additional members `more`.
  void table(metrics::log_line::Kind kind, int64_t step, const Rows& rows, const Json& more);
  const TrainingTotals& totals() const { return totals_; }
  // A plot of the drawn metric of this session's steps and evaluations, for a terminal. Empty on
  // ranks that print nothing and if no step was made.
  std::string curves() const;
  // Ends the progress line and flushes the files.
  void finish();

 private:
  struct Files;

  void print(const StepRecord& record);
  void report(const Json& line);

  std::unique_ptr<Files> files_;  // empty: nothing is written
  // "dense", "warmup", "compressed", or "uncompressed" after the freeze on one rank.
  std::string_view name_of(optim::Phase phase) const;
  Json json_of(const StepRecord& record) const;

  bool alone() const { return options_.world_size == 1; }  // nothing is sent
  bool prints() const { return options_.part == LogPart::kAll; }

  LogOptions options_;
  TrainingTotals totals_;
};

}  // namespace onebit::training
