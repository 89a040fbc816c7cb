#include "onebit/exchange/optim/moments.h"

#include <utility>

#include "onebit/math/device/memory.h"

namespace onebit::optim {

Moments Moments::zeros(const ParameterTable& table) {
  const Shape shape{table.size_elements()};
  return {.momentum = Tensor::zeros(table.device(), DType::kF32, shape),
          .variance = Tensor::zeros(table.device(), DType::kF32, shape)};
}

StateLayout Moments::layout() {
  return {{.name = "momentum", .kept = Kept::kReplicated, .exists = Exists::kBeforeFreeze},
          {.name = "variance", .kept = Kept::kReplicated, .exists = Exists::kBeforeFreeze}};
}

void Moments::save(StateWriter& writer) const {
  writer.replicated("momentum", momentum.view());
  writer.replicated("variance", variance.view());
}

void Moments::load(const StateReader& reader) {
  reader.replicated("momentum", momentum.view());
  reader.replicated("variance", variance.view());
}

StateLayout OwnVariance::layout() {
  return {{.name = "variance",
           .extent = Extent::kShare,
           .kept = Kept::kOwn,
           .on_other_ranks = OnOtherRanks::kMean,
           .exists = Exists::kAfterFreeze}};
}

Tensor share_in_memory_of(Tensor&& whole, const Topology& topology, View scratch) {
  if (!topology.two_levels()) return std::move(whole);
  // The share is kept in `scratch` until the whole is released and memory for the share reserved.
  const View waiting = scratch.rows(0, topology.elements());
  topology.take_share(waiting, whole.view());
  { const Tensor released = std::move(whole); }
  Tensor share(scratch.device(), DType::kF32, waiting.shape());
  copy(share.view(), waiting);
  memory::fill_zero(scratch.device(), scratch.raw(), scratch.size_bytes());
  return share;
}

Tensor whole_in_memory_of(Tensor&& share, const Topology& topology) {
  if (!topology.two_levels()) return std::move(share);
  const Device device = share.view().device();
  { const Tensor released = std::move(share); }
  return Tensor::zeros(device, DType::kF32, {topology.whole_elements()});
}

}  // namespace onebit::optim
