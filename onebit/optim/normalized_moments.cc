#include "onebit/optim/normalized_moments.h"

#include <utility>
#include <vector>

#include "onebit/optim/saved_state.h"

namespace onebit::optim {

void NormalizedMoments::save(params::StateWriter& writer) const {
  writer.own("variance", variance.view());
}

void NormalizedMoments::load(const params::StateReader& reader, comm::Communicator& communicator) {
  const int64_t elements = variance.shape().elements();
  const bool same_ranks = reader.saved_world_size() == communicator.world_size();
  const std::vector<float> own = same_ranks
                                     ? own_buffer(reader, "variance", communicator.rank(), elements)
                                     : mean_own_buffer(reader, communicator, "variance", elements);
  copy(variance.view(), ConstView::of(own.data(), {elements}));
}

NormalizedMoments in_memory_of(Moments&& moments) {
  return {.momentum = std::move(moments.momentum), .variance = std::move(moments.variance)};
}

Moments in_memory_of(NormalizedMoments&& moments) {
  return {.momentum = std::move(moments.momentum), .variance = std::move(moments.variance)};
}

}  // namespace onebit::optim
