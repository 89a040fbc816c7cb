#include "onebit/exchange/engine/replicas.h"

#include <span>
#include <vector>

#include "onebit/exchange/comm/collectives.h"

namespace onebit::engine {

bool replicas_agree(const ParameterTable& table, comm::Communicator& communicator) {
  const ConstView values = table.values();
  const Tensor staged = values.device().is_cpu() ? Tensor() : to_cpu_f32(values);
  const auto* words = static_cast<const uint32_t*>(
      values.device().is_cpu() ? values.raw() : static_cast<const void*>(staged.data<float>()));
  uint64_t hash = 0xCBF29CE484222325ull;
  for (int64_t index = 0; index < values.elements(); ++index) {
    hash = (hash ^ words[index]) * 0x100000001B3ull;
  }
  int64_t least = static_cast<int64_t>(hash), most = least;
  communicator.all_reduce(std::span(&least, 1), comm::Reduction::kMin);
  communicator.all_reduce(std::span(&most, 1), comm::Reduction::kMax);
  return least == most;
}

void broadcast_values(ParameterTable& table, comm::Communicator& communicator) {
  // Ranks usually have initialized or read the same values.
  if (communicator.world_size() == 1 || replicas_agree(table, communicator)) return;
  std::vector<float> values(static_cast<size_t>(table.size_elements()));
  const View staged = View::of(values.data(), {table.size_elements()});
  copy(staged, table.values());
  comm::broadcast_in_chunks(communicator, std::as_writable_bytes(std::span(values)), 0);
  copy(table.values(), staged);
}

}  // namespace onebit::engine
