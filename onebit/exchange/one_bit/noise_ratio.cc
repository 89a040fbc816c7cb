#include "onebit/exchange/one_bit/noise_ratio.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "onebit/ground/base/json.h"
#include "onebit/math/tensor/view.h"

namespace onebit::optim {
namespace {

// Updates in a cycle: one for the energy of each of the eight sub-blocks, and one for the sketch.
constexpr double kCycle = 9;

ConstView view_of(const std::vector<float>& values) {
  return ConstView::of(values.data(), {static_cast<int64_t>(values.size())});
}

View view_of(std::vector<float>& values) {
  return View::of(values.data(), {static_cast<int64_t>(values.size())});
}

}  // namespace

NoiseRatio::NoiseRatio(int64_t blocks, int world_size) : blocks_(blocks), world_size_(world_size) {
  const auto groups = static_cast<size_t>(groups_of(blocks));
  means_.local.resize(groups);
  means_.average.resize(groups);
  restart();
}

// If the variance is right, the squared average over the variance is 1 in each update.
void NoiseRatio::restart() {
  for (size_t group = 0; group < means_.local.size(); ++group) {
    const auto blocks = static_cast<double>(blocks_in(group));
    means_.average[group] = static_cast<float>(kCycle * blocks);
    means_.local[group] = static_cast<float>(kCycle * blocks * world_size_);
  }
  means_.local_norm = means_.average_norm = 0;
  recent_ = means_;
  cycles_ = 0;
}

int64_t NoiseRatio::blocks_in(size_t group) const {
  return std::min(kBlocksInGroup, blocks_ - static_cast<int64_t>(group) * kBlocksInGroup);
}

double NoiseRatio::ratio_of(double local, double average) const {
  const double most = world_size_;
  return average > 0 ? std::clamp(local / average, 1.0, most) : most;
}

bool NoiseRatio::has_changed(double local, double average, double recent_local,
                             double recent_average, int64_t blocks) const {
  // The recent mean has the noise of some 7 cycles, each with one sketch for each block.
  constexpr double kCycles = 7, kDeviations = 3.5, kLeast = 0.4;
  const double least =
      std::max(kLeast, kDeviations * std::sqrt(2 / (kCycles * static_cast<double>(blocks))));
  const double quotient = ratio_of(local, average) / ratio_of(recent_local, recent_average);
  return std::abs(std::log(quotient)) > least;
}

void NoiseRatio::follow(comm::Communicator& communicator, const Cycle& cycle) {
  const size_t groups = means_.local.size();
  // Then the sums of all groups: the second is the same on every rank except for rounding, as each
  // rank sums its own variances.
  std::vector<double> local(groups + 2, 0.0), average(groups, 0.0);
  for (size_t block = 0; block < static_cast<size_t>(blocks_); ++block) {
    const size_t group = block / static_cast<size_t>(kBlocksInGroup);
    const double energy = cycle.energy[block], variance = cycle.variance[block];
    const double square = double{cycle.sketch[block]} * cycle.sketch[block];
    local[group] += energy;
    local[groups] += energy * variance;
    average[group] += square;
    local[groups + 1] += square * variance;
  }
  communicator.all_reduce(std::span(local), comm::Reduction::kSum);
  ++cycles_;
  // The first cycles are forgotten sooner than in a plain mean.
  const double first_weight = 3 / static_cast<double>(cycles_ + 2);
  for (const auto& [means, least_weight] :
       {std::pair(&means_, kWeight), std::pair(&recent_, kRecentWeight)}) {
    const double weight = std::max(least_weight, first_weight);
    const auto approach = [weight](auto& mean, double value) {
      const double before = mean;
      mean = static_cast<std::decay_t<decltype(mean)>>(before + weight * (value - before));
    };
    for (size_t group = 0; group < groups; ++group) {
      approach(means->local[group], local[group] / world_size_);
      approach(means->average[group], average[group]);
    }
    approach(means->local_norm, local[groups] / world_size_);
    approach(means->average_norm, local[groups + 1] / world_size_);
  }
  take_recent();
}

void NoiseRatio::take_recent() {
  for (size_t group = 0; group < means_.local.size(); ++group) {
    float &local = means_.local[group], &average = means_.average[group];
    const int64_t blocks = blocks_in(group);
    if (!has_changed(local, average, recent_.local[group], recent_.average[group], blocks))
      continue;
    local = recent_.local[group];
    average = recent_.average[group];
  }
  if (has_changed(means_.local_norm, means_.average_norm, recent_.local_norm, recent_.average_norm,
                  blocks_)) {
    means_.local_norm = recent_.local_norm;
    means_.average_norm = recent_.average_norm;
  }
}

std::vector<float> NoiseRatio::ratios() const {
  std::vector<float> ratios(static_cast<size_t>(blocks_));
  for (size_t block = 0; block < ratios.size(); ++block) {
    const size_t group = block / static_cast<size_t>(kBlocksInGroup);
    ratios[block] = static_cast<float>(ratio_of(means_.local[group], means_.average[group]));
  }
  return ratios;
}

double NoiseRatio::norm_ratio() const {
  const double local = means_.local_norm;
  return local > 0 ? 1 / std::sqrt(ratio_of(local, means_.average_norm)) : 0;
}

StateLayout NoiseRatio::layout() {
  StateLayout layout;
  for (const char* name :
       {"noise_local", "noise_average", "noise_recent_local", "noise_recent_average"}) {
    layout.push_back({.name = name,
                      .extent = Extent::kBlockGroups,
                      .kept = Kept::kReplicated,
                      .exists = Exists::kAfterFreeze,
                      .on_host = true});
  }
  return layout;
}

void NoiseRatio::save(StateWriter& writer) const {
  writer.scalar("noise_ranks", world_size_);
  writer.scalar("noise_norms", Json{means_.local_norm, means_.average_norm, recent_.local_norm,
                                    recent_.average_norm});
  writer.scalar("noise_cycles", cycles_);
  writer.replicated("noise_local", view_of(means_.local));
  writer.replicated("noise_average", view_of(means_.average));
  writer.replicated("noise_recent_local", view_of(recent_.local));
  writer.replicated("noise_recent_average", view_of(recent_.average));
}

void NoiseRatio::load(const StateReader& reader) {
  restart();
  const int saved = reader.scalar("noise_ranks").get<int>();
  if (saved == 1 || world_size_ == 1) return;
  const Json norms = reader.scalar("noise_norms");
  means_.local_norm = norms.at(0).get<double>();
  means_.average_norm = norms.at(1).get<double>();
  recent_.local_norm = norms.at(2).get<double>();
  recent_.average_norm = norms.at(3).get<double>();
  cycles_ = reader.scalar("noise_cycles").get<int64_t>();
  reader.replicated("noise_local", view_of(means_.local));
  reader.replicated("noise_average", view_of(means_.average));
  reader.replicated("noise_recent_local", view_of(recent_.local));
  reader.replicated("noise_recent_average", view_of(recent_.average));
  if (saved == world_size_) return;
  const auto convert = [&](double local, auto& average) {
    if (!(average > 0)) return;
    const double share = std::clamp((local / average - 1) / (saved - 1), 0.0, 1.0);
    average = static_cast<std::decay_t<decltype(average)>>(local / (1 + share * (world_size_ - 1)));
  };
  for (Means* means : {&means_, &recent_}) {
    for (size_t group = 0; group < means->local.size(); ++group) {
      convert(means->local[group], means->average[group]);
    }
    convert(means->local_norm, means->average_norm);
  }
}

}  // namespace onebit::optim
