#include "onebit/exchange/optim/own_variance.h"

#include <utility>
#include <vector>

#include "onebit/exchange/optim/saved_state.h"
#include "onebit/math/device/memory.h"

namespace onebit::optim {

void OwnVariance::save(StateWriter& writer) const {
  writer.own("variance", view());
}

void OwnVariance::load(const StateReader& reader, const Levels& levels) {
  const compress::Ownership before = saved_ownership(reader, levels.whole_elements());
  const bool same_sources = before.sources() == levels.sources();
  const int source = levels.ownership().source_of(levels.world().rank());
  const std::vector<float> own =
      same_sources
          ? source_buffer(reader, before, "variance", source, levels.shares())
          : mean_source_buffer(reader, levels.across(), before, "variance", levels.shares());
  copy(view(), ConstView::of(own.data(), {levels.elements()}));
}

Tensor share_in_memory_of(Tensor&& whole, const Levels& levels, View scratch) {
  if (!levels.two()) return std::move(whole);
  // The share is kept in `scratch` until the whole is released and memory for the share reserved.
  const View waiting = scratch.rows(0, levels.elements());
  levels.take_share(waiting, whole.view());
  { const Tensor released = std::move(whole); }
  Tensor share(scratch.device(), DType::kF32, waiting.shape());
  copy(share.view(), waiting);
  memory::fill_zero(scratch.device(), scratch.raw(), scratch.size_bytes());
  return share;
}

Tensor whole_in_memory_of(Tensor&& share, const Levels& levels) {
  if (!levels.two()) return std::move(share);
  const Device device = share.view().device();
  { const Tensor released = std::move(share); }
  return Tensor::zeros(device, DType::kF32, {levels.whole_elements()});
}

}  // namespace onebit::optim
