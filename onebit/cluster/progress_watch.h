// Whether a run still makes progress, from the events of rank 0 (base/run_event.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "onebit/base/run_event.h"
#include "onebit/metrics/meters.h"

namespace onebit::cluster {

struct ProgressLimits {
  std::optional<double> hang_seconds;  // between two steps; empty: ten median steps, 60 s at least
  double phase_seconds = 600;  // of what is no step: the start, an evaluation, the last checkpoint
};

class ProgressWatch {
 public:
  // Times are seconds on any clock. An attempt begins in a phase, the start.
  ProgressWatch(const ProgressLimits& limits, double now);

  // Failures have no meaning here.
  void event(const RunEvent& event, double now);
  // Empty as long as all is well; else what has stopped, since when: "no step for 61 s".
  std::optional<std::string> complaint(double now) const;

  // Seconds that may pass until the next event.
  double limit() const;
  // The last one seen; -1 before the first event.
  int64_t step() const { return step_; }
  // Of the checkpoint that the run would continue from: the one it began with, or its last one; 0
  // where there is none, -1 where that is not known.
  int64_t saved_step() const { return saved_step_; }
  bool has_begun() const { return saved_step_ >= 0; }  // to train
  bool finished() const { return finished_; }
  // Ended early because it was asked to, after a checkpoint.
  bool stopped() const { return stopped_; }

 private:
  ProgressLimits limits_;
  double last_;
  std::string phase_ = "start";  // empty: between two steps
  bool timed_ = false;           // the last event was a step, so the next one's time counts
  int64_t step_ = -1, saved_step_ = -1;
  bool finished_ = false, stopped_ = false;
  metrics::Median steps_;
};

}  // namespace onebit::cluster
