// Recommends a way to exchange gradients and gives the reason, in one sentence.
#pragma once

#include "onebit/program/plan/long_duration.h"
#include "onebit/program/plan/run_plan.h"

namespace onebit::plan {

// A simpler way is chosen unless the fastest saves more than this share of its time.
inline constexpr double kWorthwhile = 0.05;
// A recipe is out of reach beyond kOutOfReachSeconds, and within reach up to kInReachSeconds.
inline constexpr double kOutOfReachSeconds = kYear, kInReachSeconds = 30 * kDay;

// Recommends the simplest way that is nearly as fast as the fastest, among those whose memory fits.
// If the run takes more than a year, the sentence says so and gives the number of such ranks with
// which it would end in a month.
Advice advise(const RunPlan& plan);

}  // namespace onebit::plan
