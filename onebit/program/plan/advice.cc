#include "onebit/program/plan/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "onebit/exchange/engine/optimizer_list.h"
#include "onebit/exchange/optim/adam.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/wording.h"
#include "onebit/ground/metrics/human.h"

namespace onebit::plan {

namespace {

DType sixteen_bits(const engine::EngineConfig& config) {
  if (size_bytes_of(config.wire) == 2) return config.wire;
  return config.compute == DType::kF16 ? DType::kF16 : DType::kBF16;
}

// The method with the recipe's name. If there is none (1-bit LAMB), the first that sends as much:
// some methods have updates in which nothing is sent.
template <typename Recipes>
auto most_like(const optim::OptimizerRecipe& own, Recipes& others) {
  const auto named = std::find_if(others.begin(), others.end(),
                                  [&](const auto& other) { return other->title() == own.title(); });
  if (named != others.end()) return named;
  const auto alike = std::find_if(others.begin(), others.end(), [&](const auto& other) {
    return other->makes_local_updates() == own.makes_local_updates();
  });
  ONEBIT_INVARIANT(alike != others.end());
  return alike;
}

}  // namespace

std::vector<Choice> choices_of(const engine::EngineConfig& config, const optim::RunFacts& run) {
  const optim::OptimizerRecipe& own = *config.optimizer;
  const int64_t tenth = std::max<int64_t>(1, run.total_steps / 10);
  std::vector<Choice> choices;
  for (const DType wire : {DType::kF32, sixteen_bits(config)}) {
    choices.push_back({.name = fmt::format("{} averages", name_of(wire)),
                       .of_recipe = !own.compresses() && wire == config.wire,
                       .wire = wire,
                       .optimizer = own.compresses() ? optim::adam_recipe({}) : config.optimizer});
  }
  std::vector<std::shared_ptr<const optim::OptimizerRecipe>> compressed =
      engine::compressed_recipes(tenth);
  if (own.compresses()) *most_like(own, compressed) = config.optimizer;
  for (const auto& optimizer : compressed) {
    choices.push_back({.name = std::string(optimizer->title()),
                       .of_recipe = optimizer == config.optimizer,
                       .wire = config.wire,
                       .optimizer = optimizer});
  }
  return choices;
}

namespace {

double seconds_of(const PlannedRun& run) {
  return run.fits ? run.run.seconds : std::numeric_limits<double>::infinity();
}

size_t simplest_of_fast(const std::vector<PlannedRun>& runs) {
  double least = std::numeric_limits<double>::infinity();
  for (const PlannedRun& run : runs) least = std::min(least, seconds_of(run));
  for (size_t i = 0; i < runs.size(); ++i) {
    if ((1 - kWorthwhile) * seconds_of(runs[i]) <= least) return i;
  }
  return 0;
}

size_t dense_of_recipe_or_first(const RunPlan& plan) {
  for (size_t i = 0; i < plan.choices.size(); ++i) {
    if (plan.choices[i].of_recipe && !plan.choices[i].optimizer->compresses()) return i;
  }
  return 0;
}

std::string nothing_fits(const RunPlan& plan) {
  const PlannedRun& least = *std::min_element(
      plan.asked.runs.begin(), plan.asked.runs.end(),
      [](const PlannedRun& a, const PlannedRun& b) { return a.memory_bytes < b.memory_bytes; });
  return fmt::format(
      "Nothing fits: {} of at least {} each need more than the {} of a host; use a smaller "
      "train_micro_batch_size_per_gpu, fewer ranks per host or the memory options of the model",
      counted(plan.asked.cluster.ranks_per_host, "rank"),
      metrics::human_bytes(static_cast<double>(least.memory_bytes)),
      metrics::human_bytes(static_cast<double>(plan.machine.memory_bytes)));
}

size_t sixteen_bit_averages(const RunPlan& plan) {
  const auto found =
      std::find_if(plan.choices.begin(), plan.choices.end(), [](const Choice& choice) {
        return !choice.optimizer->compresses() && size_bytes_of(choice.wire) == 2;
      });
  ONEBIT_INVARIANT(found != plan.choices.end());
  return static_cast<size_t>(found - plan.choices.begin());
}

std::string reason(const RunPlan& plan, size_t chosen) {
  const std::vector<PlannedRun>& runs = plan.asked.runs;
  const Choice& choice = plan.choices[chosen];
  if (!choice.optimizer->compresses()) {
    return fmt::format(
        "Choose {}: {}, of which {:.0f} % is spent waiting for the network, and no other way that "
        "fits saves more than {:.0f} %",
        choice.name, long_duration(runs[chosen].run.seconds), 100 * runs[chosen].waiting_share,
        100 * kWorthwhile);
  }
  const size_t averages = sixteen_bit_averages(plan);
  const PlannedRun& sixteen = runs[averages];
  return fmt::format(
      "Choose {}: {} instead of {} with {}, because {:.0f} % of a step with those is spent waiting "
      "for the network",
      choice.name, long_duration(runs[chosen].run.seconds), long_duration(sixteen.run.seconds),
      plan.choices[averages].name, 100 * sixteen.waiting_share);
}

// The fewest ranks with which the run ends in a month.
std::string within_reach(const RunPlan& plan) {
  const PlannedRanks* best = nullptr;
  double most = kInReachSeconds, seconds = 0;
  for (const PlannedRanks& ranks : plan.others) {
    for (const PlannedRun& run : ranks.runs) {
      if (best == nullptr && seconds_of(run) <= most) {
        best = &ranks;
        seconds = seconds_of(run);
      }
    }
  }
  if (best == nullptr) {
    return "no number of ranks up to 1,024 of this kind that the batch allows finishes it in a "
           "month: use a smaller model, fewer steps or faster hosts";
  }
  return fmt::format("{} ranks on {} such hosts would take {}", best->cluster.ranks(),
                     best->cluster.hosts, long_duration(seconds));
}

}  // namespace

Advice advise(const RunPlan& plan) {
  const std::vector<PlannedRun>& runs = plan.asked.runs;
  const bool fits =
      std::any_of(runs.begin(), runs.end(), [](const PlannedRun& run) { return run.fits; });
  if (!fits) {
    return {.choice = dense_of_recipe_or_first(plan),
            .out_of_reach = true,
            .sentence = nothing_fits(plan) + "."};
  }
  const bool alone = plan.asked.cluster.ranks() == 1;
  Advice advice{.choice = alone ? dense_of_recipe_or_first(plan) : simplest_of_fast(runs)};
  const double seconds = runs[advice.choice].run.seconds;
  advice.out_of_reach = seconds > kOutOfReachSeconds;
  advice.sentence =
      alone ? fmt::format("One rank exchanges nothing, so there is nothing to choose: {}",
                          long_duration(seconds))
            : reason(plan, advice.choice);
  if (advice.out_of_reach) {
    advice.sentence = fmt::format("Out of reach: {} to the end. {}; {}", long_duration(seconds),
                                  advice.sentence, within_reach(plan));
  }
  advice.sentence += ".";
  return advice;
}

}  // namespace onebit::plan
