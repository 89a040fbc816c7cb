#include "onebit/optim/noise_share.h"

#include <algorithm>

#include "onebit/optim/own_buffer.h"
#include "onebit/tensor/view.h"

namespace onebit::optim {
namespace {

Shape shape_of(const std::vector<float>& values) {
  return {static_cast<int64_t>(values.size())};
}

}  // namespace

NoiseShare::NoiseShare(int64_t blocks)
    : own_(static_cast<size_t>(blocks), 0.0f), averaged_(own_), share_(own_) {}

void NoiseShare::observe(std::span<const float> own, std::span<const float> averaged) {
  observed_ = true;
  for (size_t block = 0; block < own_.size(); ++block) {
    own_[block] += own[block];
    averaged_[block] += averaged[block];
  }
}

void NoiseShare::settle(comm::Communicator& communicator) {
  std::fill(share_.begin(), share_.end(), 0.0f);
  const double world = communicator.world_size();
  if (world == 1) return;
  communicator.all_reduce(std::span(own_), comm::Reduction::kSum);
  double typical = 0;
  int64_t known = 0;
  for (size_t block = 0; block < share_.size(); ++block) {
    if (averaged_[block] <= 0) continue;
    const double ratio = static_cast<double>(own_[block]) / world / averaged_[block];
    const double share = std::clamp((ratio - 1) / (world - 1), 0.0, 1.0);
    share_[block] = static_cast<float>(share);
    typical += share;
    ++known;
  }
  if (known == 0) return;
  for (size_t block = 0; block < share_.size(); ++block) {
    if (averaged_[block] <= 0)
      share_[block] = static_cast<float>(typical / static_cast<double>(known));
  }
}

std::vector<float> NoiseShare::ratios(int world_size) const {
  std::vector<float> ratios;
  ratios.reserve(share_.size());
  for (const float share : share_) {
    ratios.push_back(1.0f + share * static_cast<float>(world_size - 1));
  }
  return ratios;
}

void NoiseShare::save(params::StateWriter& writer, bool settled) const {
  writer.scalar("noise_observed", observed_);
  if (settled) {
    writer.replicated("noise_share", ConstView::of(share_.data(), shape_of(share_)));
  } else if (observed_) {
    writer.own("noise_own", ConstView::of(own_.data(), shape_of(own_)));
    writer.replicated("noise_averaged", ConstView::of(averaged_.data(), shape_of(averaged_)));
  }
}

void NoiseShare::load(const params::StateReader& reader, bool settled, int rank, int world_size) {
  observed_ = reader.scalar("noise_observed").get<bool>();
  std::fill(own_.begin(), own_.end(), 0.0f);
  std::fill(averaged_.begin(), averaged_.end(), 0.0f);
  if (settled) {
    reader.replicated("noise_share", View::of(share_.data(), shape_of(share_)));
    return;
  }
  // At another number of ranks what was observed says nothing about theirs: it begins again.
  observed_ = observed_ && reader.saved_world_size() == world_size;
  if (!observed_) return;
  own_ = own_buffer(reader, "noise_own", rank, own_.size());
  reader.replicated("noise_averaged", View::of(averaged_.data(), shape_of(averaged_)));
}

}  // namespace onebit::optim
