#include "onebit/program/launch/restart_policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "onebit/ground/base/wording.h"

namespace onebit::launch {
namespace {

constexpr double kLongestPause = 60;  // multiple of the first pause

}  // namespace

RestartPolicy::RestartPolicy(int max_restarts, double first_pause_seconds)
    : max_restarts_(max_restarts), first_pause_seconds_(first_pause_seconds) {}

RestartDecision RestartPolicy::after(const Failure& failure) {
  if (failure.checkpoint != last_.checkpoint) restarts_ = 0;
  const bool again = repeated_ > 0 && failure.cause == last_.cause && failure.step == last_.step &&
                     failure.checkpoint == last_.checkpoint;
  repeated_ = again ? repeated_ + 1 : 1;
  last_ = failure;
  if (failure.kind == FaultKind::kReported && !failure.begun && max_restarts_ > 0) {
    return {.reason = "it ended with an error of its own before it started training"};
  }
  const int most = failure.kind == FaultKind::kReported ? 2 : 3;
  if (repeated_ >= most && max_restarts_ > 0) {
    return {.reason = fmt::format("it ended {} times in a row with the same error at the same step",
                                  repeated_)};
  }
  if (restarts_ >= max_restarts_) {
    return {.reason = max_restarts_ == 0
                          ? "--max-restarts is 0"
                          : fmt::format("--max-restarts: {} without a new checkpoint",
                                        counted(restarts_, "restart"))};
  }
  const double pause =
      first_pause_seconds_ * std::min(kLongestPause, std::exp2(static_cast<double>(restarts_)));
  ++restarts_;
  return {.restart = true, .pause_seconds = pause, .reason = {}};
}

}  // namespace onebit::launch
