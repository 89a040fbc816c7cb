// Which way to exchange, and why, in one sentence.
#pragma once

#include "onebit/plan/long_duration.h"
#include "onebit/plan/run_plan.h"

namespace onebit::plan {

// A simpler way is chosen as long as the fastest saves no more than this share of its time.
inline constexpr double kWorthwhile = 0.05;
// Beyond this a recipe is out of reach; within that it is not.
inline constexpr double kOutOfReachSeconds = kYear, kInReachSeconds = 30 * kDay;

// Of the ways whose memory fits, the simplest that is nearly as fast as the fastest. Says plainly
// when the run takes more than a year, and with how many ranks of this kind it would end in a
// month.
Advice advise(const RunPlan& plan);

}  // namespace onebit::plan
