#include "onebit/optim/noise_ratio.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "onebit/base/json.h"
#include "onebit/optim/earlier_state.h"
#include "onebit/tensor/view.h"

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

NoiseRatio::NoiseRatio(int64_t blocks, int world_size)
    : blocks_(blocks),
      world_size_(world_size),
      local_(static_cast<size_t>((blocks + kBlocksInGroup - 1) / kBlocksInGroup)),
      average_(local_.size()) {
  restart();
}

// If the variance is right, the squared average over the variance is 1 in each update.
void NoiseRatio::restart() {
  for (size_t group = 0; group < local_.size(); ++group) {
    const int64_t first = static_cast<int64_t>(group) * kBlocksInGroup;
    const double blocks = static_cast<double>(std::min(kBlocksInGroup, blocks_ - first));
    average_[group] = static_cast<float>(kCycle * blocks);
    local_[group] = static_cast<float>(kCycle * blocks * world_size_);
  }
  local_norm_ = average_norm_ = 0;
  cycles_ = 0;
}

double NoiseRatio::ratio_of(double local, double average) const {
  const double most = world_size_;
  return average > 0 ? std::clamp(local / average, 1.0, most) : most;
}

void NoiseRatio::follow(comm::Communicator& communicator, const Cycle& cycle) {
  const size_t groups = local_.size();
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
  const auto approach = [](auto& mean, double value, double weight) {
    const double before = mean;
    mean = static_cast<std::decay_t<decltype(mean)>>(before + weight * (value - before));
  };
  const double weight = std::max(kWeight, 1 / static_cast<double>(++cycles_));
  for (size_t group = 0; group < groups; ++group) {
    approach(local_[group], local[group] / world_size_, weight);
    approach(average_[group], average[group], weight);
  }
  approach(local_norm_, local[groups] / world_size_, weight);
  approach(average_norm_, local[groups + 1] / world_size_, weight);
}

std::vector<float> NoiseRatio::ratios() const {
  std::vector<float> ratios(static_cast<size_t>(blocks_));
  for (size_t block = 0; block < ratios.size(); ++block) {
    const size_t group = block / static_cast<size_t>(kBlocksInGroup);
    ratios[block] = static_cast<float>(ratio_of(local_[group], average_[group]));
  }
  return ratios;
}

double NoiseRatio::norm_ratio() const {
  return local_norm_ > 0 ? 1 / std::sqrt(ratio_of(local_norm_, average_norm_)) : 0;
}

void NoiseRatio::save(params::StateWriter& writer) const {
  writer.scalar("noise_ranks", world_size_);
  writer.scalar("noise_norms", Json{local_norm_, average_norm_});
  writer.scalar("noise_cycles", cycles_);
  writer.replicated("noise_local", view_of(local_));
  writer.replicated("noise_average", view_of(average_));
}

void NoiseRatio::load(const params::StateReader& reader) {
  restart();
  const int saved = reader.scalar("noise_ranks").get<int>();
  if (saved == 1 || world_size_ == 1) return;
  const Json norms = reader.scalar("noise_norms");
  local_norm_ = norms.at(0).get<double>();
  average_norm_ = norms.at(1).get<double>();
  cycles_ = completed_cycles(reader.scalar("noise_cycles"), static_cast<int64_t>(1 / kWeight));
  reader.replicated("noise_local", view_of(local_));
  reader.replicated("noise_average", view_of(average_));
  if (saved == world_size_) return;
  const auto convert = [&](double local, auto& average) {
    if (!(average > 0)) return;
    const double share = std::clamp((local / average - 1) / (saved - 1), 0.0, 1.0);
    average = static_cast<std::decay_t<decltype(average)>>(local / (1 + share * (world_size_ - 1)));
  };
  for (size_t group = 0; group < local_.size(); ++group) convert(local_[group], average_[group]);
  convert(local_norm_, average_norm_);
}

}  // namespace onebit::optim
