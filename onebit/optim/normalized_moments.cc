#include "onebit/optim/normalized_moments.h"

#include <utility>
#include <vector>

#include "onebit/device/memory.h"
#include "onebit/optim/saved_state.h"

namespace onebit::optim {

void NormalizedMoments::save(params::StateWriter& writer) const {
  writer.own("variance", variance.view());
}

void NormalizedMoments::load(const params::StateReader& reader, const Levels& levels) {
  const compress::Ownership before = saved_ownership(reader, levels.whole_elements());
  const bool same_sources = before.sources() == levels.sources();
  const int source = levels.ownership().source_of(levels.world().rank());
  const std::vector<float> own =
      same_sources
          ? source_buffer(reader, before, "variance", source, levels.shares())
          : mean_source_buffer(reader, levels.across(), before, "variance", levels.shares());
  copy(variance.view(), ConstView::of(own.data(), {levels.elements()}));
}

namespace {

// The share of `whole`. It waits in `scratch` until the memory of the whole is released and that of
// the share reserved.
Tensor share_of(Tensor&& whole, const Levels& levels, View scratch) {
  const View waiting = scratch.rows(0, levels.elements());
  levels.take_share(waiting, whole.view());
  { const Tensor released = std::move(whole); }
  Tensor share(scratch.device(), DType::kF32, waiting.shape());
  copy(share.view(), waiting);
  return share;
}

Tensor whole_of(Tensor&& share, const Levels& levels) {
  const Device device = share.view().device();
  { const Tensor released = std::move(share); }
  return Tensor::zeros(device, DType::kF32, {levels.whole_elements()});
}

}  // namespace

NormalizedMoments in_memory_of(Moments&& moments, const Levels& levels, View scratch) {
  if (!levels.two()) {
    return {.momentum = std::move(moments.momentum), .variance = std::move(moments.variance)};
  }
  NormalizedMoments shares = {.momentum = share_of(std::move(moments.momentum), levels, scratch),
                              .variance = share_of(std::move(moments.variance), levels, scratch)};
  memory::fill_zero(scratch.device(), scratch.raw(), scratch.size_bytes());
  return shares;
}

Moments in_memory_of(NormalizedMoments&& moments, const Levels& levels) {
  if (!levels.two()) {
    return {.momentum = std::move(moments.momentum), .variance = std::move(moments.variance)};
  }
  return {.momentum = whole_of(std::move(moments.momentum), levels),
          .variance = whole_of(std::move(moments.variance), levels)};
}

}  // namespace onebit::optim
