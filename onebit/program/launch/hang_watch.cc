#include "onebit/program/launch/hang_watch.h"

#include <fmt/format.h>

#include <algorithm>

namespace onebit::launch {
namespace {

constexpr double kMinHangSeconds = 60, kMedianSteps = 10;

}  // namespace

HangWatch::HangWatch(const HangLimits& limits, double now) : limits_(limits), last_(now) {}

void HangWatch::event(const RunEvent& event, double now) {
  using Kind = RunEvent::Kind;
  switch (event.kind) {
    case Kind::kStep:
      if (timed_) steps_.add(now - last_);
      timed_ = true;
      phase_.clear();
      step_ = event.step;
      break;
    case Kind::kPhase:
      phase_ = event.text;
      timed_ = false;
      break;
    case Kind::kSaved:  // saved in parallel with steps: no sign of their progress
      saved_step_ = event.step;
      return;
    case Kind::kBegin:
      saved_step_ = event.step;
      [[fallthrough]];
    case Kind::kStopped:
    case Kind::kFinished:
      step_ = event.step;
      stopped_ = stopped_ || event.kind == Kind::kStopped;
      finished_ = finished_ || event.kind == Kind::kFinished;
      phase_ = event.kind == Kind::kBegin ? "start" : "end";
      timed_ = false;
      break;
    default:
      return;
  }
  last_ = now;
}

double HangWatch::limit() const {
  if (!phase_.empty()) return limits_.phase_seconds;
  if (limits_.hang_seconds) return *limits_.hang_seconds;
  return std::max(kMinHangSeconds, kMedianSteps * steps_.median());
}

std::optional<std::string> HangWatch::complaint(double now) const {
  const double waited = now - last_;
  if (waited <= limit()) return std::nullopt;
  if (phase_.empty()) return fmt::format("no step for {:.0f} s after step {}", waited, step_);
  return fmt::format("no progress for {:.0f} s in the phase \"{}\"", waited, phase_);
}

}  // namespace onebit::launch
