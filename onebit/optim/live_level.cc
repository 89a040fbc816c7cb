#include "onebit/optim/live_level.h"

#include <algorithm>
#include <cmath>

#include "onebit/optim/own_buffer.h"
#include "onebit/tensor/view.h"

namespace onebit::optim {
namespace {

float as_float(double value) {
  return static_cast<float>(value);
}

Shape shape_of(const std::vector<float>& values) {
  return {static_cast<int64_t>(values.size())};
}

}  // namespace

LiveLevel::LiveLevel(int64_t blocks)
    : level_(static_cast<size_t>(blocks), 1.0f), reference_(static_cast<size_t>(blocks), 0.0f) {}

void LiveLevel::observe(std::span<const float> energy) {
  ++observations_;
  const double weight = std::max(kReferenceWeight, 1 / static_cast<double>(observations_));
  for (size_t block = 0; block < reference_.size(); ++block) {
    const double before = reference_[block];
    reference_[block] = as_float(before + weight * (energy[block] - before));
  }
}

// Over the blocks that had any gradient; 0 when none had.
double LiveLevel::mean_reference() const {
  double sum = 0;
  int64_t count = 0;
  for (const float reference : reference_) {
    sum += reference;
    count += reference > 0 ? 1 : 0;
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

void LiveLevel::start(comm::Communicator& communicator) {
  communicator.all_reduce(std::span(reference_), comm::Reduction::kSum);
  for (float& reference : reference_) {
    reference = as_float(reference / static_cast<double>(communicator.world_size()));
  }
  const double least = kLeastReference * mean_reference();
  for (float& reference : reference_) reference = std::max(reference, as_float(least));
  std::fill(level_.begin(), level_.end(), 1.0f);
}

void LiveLevel::update(std::span<const float> energy) {
  for (size_t block = 0; block < level_.size(); ++block) {
    // Nothing was observed before the freeze: the first gradient is the reference.
    if (reference_[block] == 0) reference_[block] = energy[block];
    if (reference_[block] == 0) continue;
    const double ratio = static_cast<double>(energy[block]) / reference_[block];
    const double level = kMemory * level_[block] + (1 - kMemory) * ratio;
    level_[block] = as_float(std::min(level, 1e30));
  }
}

void LiveLevel::join(int64_t block, int64_t live, int64_t woken) {
  const double typical = mean_reference();
  if (typical == 0) return;
  float& reference = reference_[static_cast<size_t>(block)];
  const auto before = static_cast<double>(live), joining = static_cast<double>(woken);
  reference = as_float((before * reference + joining * typical) / (before + joining));
}

float LiveLevel::brake(int64_t block) const {
  const double level = level_[static_cast<size_t>(block)];
  return as_float(1 / std::sqrt(std::max(level, kLeast)));
}

void LiveLevel::save(params::StateWriter& writer, bool started) const {
  const ConstView reference = ConstView::of(reference_.data(), shape_of(reference_));
  writer.scalar("level_observations", observations_);
  if (started) {
    writer.replicated("level", ConstView::of(level_.data(), shape_of(level_)));
    writer.replicated("level_reference", reference);
  } else if (observations_ > 0) {
    writer.own("level_reference", reference);
  }
}

void LiveLevel::load(const params::StateReader& reader, bool started, int rank, int world_size) {
  observations_ = reader.scalar("level_observations").get<int64_t>();
  if (started) {
    reader.replicated("level", View::of(level_.data(), shape_of(level_)));
    reader.replicated("level_reference", View::of(reference_.data(), shape_of(reference_)));
    return;
  }
  std::fill(reference_.begin(), reference_.end(), 0.0f);
  if (observations_ == 0) return;
  const auto reference_of = [&](int from) {
    return own_buffer(reader, "level_reference", from, reference_.size());
  };
  const int saved = reader.saved_world_size();
  if (saved == world_size) {
    reference_ = reference_of(rank);
    return;
  }
  // The average over ranks is what counts in the end.
  for (int from = 0; from < saved; ++from) {
    const std::vector<float> one = reference_of(from);
    for (size_t block = 0; block < one.size(); ++block) {
      reference_[block] += one[block] / static_cast<float>(saved);
    }
  }
}

}  // namespace onebit::optim
