// Detects whether a run still makes progress, from the events of rank 0 (base/run_event.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "onebit/ground/base/run_event.h"
#include "onebit/ground/metrics/meters.h"

namespace onebit::launch {

struct HangLimits {
  std::optional<double> hang_seconds;  // between two steps. Empty: ten median steps, at least 60 s
  double phase_seconds = 600;  // without steps: the start, an evaluation, the last checkpoint
};

class HangWatch {
 public:
  // Times are seconds on any clock. An attempt begins in the phase "start".
  HangWatch(const HangLimits& limits, double now);

  // Takes an event. Failures are ignored.
  void event(const RunEvent& event, double now);
  // Empty while the run makes progress. Otherwise what is missing, and for how long: "no step for
  // 61 s".
  std::optional<std::string> complaint(double now) const;

  // Seconds that may pass until the next event.
  double limit() const;
  // The last step seen, or -1 before the first event.
  int64_t step() const { return step_; }
  // Step of the checkpoint that the run would continue from, its last one or the one it began with.
  // 0: there is none, -1: unknown.
  int64_t saved_step() const { return saved_step_; }
  bool has_begun() const { return saved_step_ >= 0; }  // training has begun
  bool finished() const { return finished_; }
  // Whether the run ended early on request, after a checkpoint.
  bool stopped() const { return stopped_; }

 private:
  HangLimits limits_;
  double last_;
  std::string phase_ = "start";  // empty: between two steps
  bool timed_ = false;           // the last event was a step, so the time to the next one counts
  int64_t step_ = -1, saved_step_ = -1;
  bool finished_ = false, stopped_ = false;
  metrics::Median steps_;
};

}  // namespace onebit::launch
