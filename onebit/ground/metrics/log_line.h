// The lines of a run's metrics.jsonl: their kinds, and the names in them that have a reader.
// training/training_log.h writes them, metrics/run_history.h reads them.
//
//   {"kind": "step", "step": 7, "samples": 448, "loss": 6.5, "metrics": {"mlm_loss": 5.8}, ...}
//   {"kind": "evaluation", "step": 7, "samples": 448, "held_out": {"mlm_loss": 5.9, "masked": 440}}
//   {"kind": "start", "step": 0, "time": "2026-01-02T03:04:05Z", "rows": [["model", "BERT"]], ...}
//   {"kind": "end", "step": 9, "time": "2026-01-02T03:05:05Z", "rows": [["steps", "9"]]}
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "onebit/ground/base/json_fwd.h"
#include "onebit/ground/metrics/append_file.h"

namespace onebit::metrics::log_line {

enum class Kind {
  kStep,        // an update
  kEvaluation,  // the metrics of one, in an object under the evaluation's name
  kStart,       // the table that the run prints before training
  kEnd,         // the table after training
};

// {"kind": ..., "step": ...}, the beginning of every line.
Json begun(Kind kind, int64_t step);
// Empty if `line` is not an object, or has no known kind.
std::optional<Kind> kind_of(const Json& line);

// Every line has the first two keys. Lines of steps and evaluations have kSamples, too.
inline constexpr const char* kKind = "kind";
inline constexpr const char* kStep = "step";
inline constexpr const char* kSamples = "samples";

// Keys of a step.
inline constexpr const char* kLoss = "loss";
inline constexpr const char* kMetrics = "metrics";  // an object of the task's own metrics
inline constexpr const char* kLearningRate = "learning_rate";
inline constexpr const char* kGradientNorm = "gradient_norm";
inline constexpr const char* kClipCoefficient = "clip_coefficient";
inline constexpr const char* kLossScale = "loss_scale";
inline constexpr const char* kSkippedSteps = "skipped_steps";
inline constexpr const char* kSamplesPerSecond = "samples_per_second";
inline constexpr const char* kWireBytes = "wire_bytes";
inline constexpr const char* kWireBytesDense16 = "wire_bytes_dense16";
inline constexpr const char* kResidualOverSent = "residual_over_sent";
inline constexpr const char* kPhase = "phase";
inline constexpr const char* kCompressedPhase = "compressed";  // other phases send full gradients
inline constexpr const char* kSeconds = "seconds";  // an object of parts (evaluations: a number)

// In kSeconds.
namespace seconds {
inline constexpr const char* kStep = "step";
inline constexpr const char* kData = "data";
inline constexpr const char* kForward = "forward";
inline constexpr const char* kBackward = "backward";
inline constexpr const char* kCompress = "compress";
inline constexpr const char* kWait = "wait";
inline constexpr const char* kOptimizer = "optimizer";
}  // namespace seconds

// Keys of a start and an end.
inline constexpr const char* kTime = "time";                         // UTC, ISO 8601
inline constexpr const char* kRows = "rows";                         // pairs of words
inline constexpr const char* kExpectedSeconds = "expected_seconds";  // of a step, at a start
inline constexpr const char* kKeptBy = "kept_by";  // at a start of a run that keeps its best model

// In kExpectedSeconds.
namespace expected {
inline constexpr const char* kDense = "dense";
inline constexpr const char* kCompressed = "compressed";
inline constexpr const char* kRun = "run";  // of all steps from the start on
}  // namespace expected

// In kKeptBy.
namespace kept_by {
inline constexpr const char* kMetric = "metric";  // its name in evaluations
inline constexpr const char* kSmallerIsBetter = "smaller_is_better";
}  // namespace kept_by

}  // namespace onebit::metrics::log_line

namespace onebit::metrics {

// The writer of metrics.jsonl: one JSON object per line, each with the integer key "step".

// "last_step" for a new run: keeps no line.
inline constexpr int64_t kNoStep = -1;
// The ending of the copy of a file that had unreadable lines.
inline constexpr const char* kDamagedSuffix = ".damaged";

// The number of update lines up to step `last_step`, or 0 if there is no file. Reads only the
// beginnings of lines.
int64_t count_steps(const Path& path, int64_t last_step);

class JsonLinesWriter {
 public:
  // Continues the file of a run after step `last_step`: lines of later steps, and a last line cut
  // short by a kill, are dropped atomically. Lines that are not objects with a step are dropped
  // with a warning and a copy of the file, with kDamagedSuffix. Error: cannot write.
  JsonLinesWriter(const Path& path, int64_t last_step);

  // Appends the object, which has reached the operating system on return. A value that is not
  // finite becomes null, since JSON cannot represent it.
  void write(const Json& object);

 private:
  std::unique_ptr<AppendFile> file_;
};

}  // namespace onebit::metrics
