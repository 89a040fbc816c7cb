#include "onebit/cluster/progress_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace onebit::cluster {
namespace {

constexpr double kLeastHangSeconds = 60, kMedianSteps = 10;

int64_t number(std::string_view text, int64_t otherwise) {
  int64_t value = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

ProgressWatch::ProgressWatch(const ProgressLimits& limits, double now)
    : limits_(limits), last_(now) {}

void ProgressWatch::event(const std::string& text, double now) {
  const size_t blank = text.find(' ');
  const std::string name = text.substr(0, blank);
  const std::string rest = blank == std::string::npos ? "" : text.substr(blank + 1);
  if (name == "step") {
    if (timed_) steps_.add(now - last_);
    timed_ = true;
    phase_.clear();
    step_ = number(rest, step_);
  } else if (name == "phase") {
    phase_ = rest;
    timed_ = false;
  } else if (name == "begin" || name == "stopped" || name == "finished") {
    step_ = number(rest, step_);
    stopped_ = stopped_ || name == "stopped";
    finished_ = finished_ || name == "finished";
    phase_ = name == "begin" ? "start" : "end";
    timed_ = false;
  } else {
    return;
  }
  last_ = now;
}

double ProgressWatch::limit() const {
  if (!phase_.empty()) return limits_.phase_seconds;
  if (limits_.hang_seconds) return *limits_.hang_seconds;
  return std::max(kLeastHangSeconds, kMedianSteps * steps_.median());
}

std::optional<std::string> ProgressWatch::complaint(double now) const {
  const double waited = now - last_;
  if (waited <= limit()) return std::nullopt;
  if (phase_.empty()) return fmt::format("no step for {:.0f} s after step {}", waited, step_);
  return fmt::format("nothing for {:.0f} s in the phase \"{}\"", waited, phase_);
}

}  // namespace onebit::cluster
