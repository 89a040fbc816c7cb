// The progress of a run for the program that has started it (base/run_event.h). All ranks make the
// same progress, so rank 0 alone reports it.
#pragma once

#include <cstdint>
#include <string>

#include "onebit/ground/base/run_event.h"

namespace onebit::training {

class RunEvents {
 public:
  explicit RunEvents(int rank) : is_first_(rank == 0) {}

  void begin(int64_t step) const { report({.kind = RunEvent::Kind::kBegin, .step = step}); }
  void step(int64_t step) const { report({.kind = RunEvent::Kind::kStep, .step = step}); }
  void phase(const std::string& name) const {
    report({.kind = RunEvent::Kind::kPhase, .text = name});
  }
  void stopped(int64_t step) const { report({.kind = RunEvent::Kind::kStopped, .step = step}); }
  void finished(int64_t step) const { report({.kind = RunEvent::Kind::kFinished, .step = step}); }

 private:
  void report(const RunEvent& event) const {
    if (is_first_) report_run_event(event);
  }

  bool is_first_;
};

}  // namespace onebit::training
