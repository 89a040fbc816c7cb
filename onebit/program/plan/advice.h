// Recommends a way to exchange gradients and gives the reason, in one sentence.
#pragma once

#include <vector>

#include "onebit/exchange/engine/config.h"
#include "onebit/program/plan/quantity.h"
#include "onebit/program/plan/run_plan.h"

namespace onebit::plan {

// The ways of exchanging gradients that a plan compares.

// Averages in f32 and in 16 bits, 1-bit Adam, 0/1 Adam. The recipe's own way is used as it is, the
// others are derived from the recipe: a derived 1-bit Adam freezes after a tenth of the run, a
// derived 0/1 Adam has DeepSpeed's intervals and stops averaging after a tenth. Their averages have
// the recipe's wire type.
std::vector<Choice> choices_of(const engine::EngineConfig& config, const optim::RunFacts& run);

// A simpler way is chosen unless the fastest saves more than this share of its time.
inline constexpr double kWorthwhile = 0.05;
// A recipe is out of reach beyond kOutOfReachSeconds, and within reach up to kInReachSeconds.
inline constexpr double kOutOfReachSeconds = kYear, kInReachSeconds = 30 * kDay;

// Recommends the simplest way that is nearly as fast as the fastest, among those whose memory fits.
// If the run takes more than a year, the sentence says so and gives the number of such ranks with
// which it would end in a month.
Advice advise(const RunPlan& plan);

}  // namespace onebit::plan
