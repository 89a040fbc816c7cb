#include "onebit/device/onednn_packed_weights.h"

#include <algorithm>

namespace onebit {

void PackedWeights::add(const void* begin, const void* end) {
  ranges_.push_back({static_cast<const std::byte*>(begin), static_cast<const std::byte*>(end)});
}

void PackedWeights::remove(const void* begin) {
  const auto range = std::find_if(ranges_.begin(), ranges_.end(),
                                  [begin](const Range& r) { return r.begin == begin; });
  if (range == ranges_.end()) return;
  copies_.erase(copies_.lower_bound(range->begin), copies_.lower_bound(range->end));
  ranges_.erase(range);
}

bool PackedWeights::covers(const void* weights) const {
  const auto* address = static_cast<const std::byte*>(weights);
  return std::any_of(ranges_.begin(), ranges_.end(), [address](const Range& range) {
    return range.begin <= address && address < range.end;
  });
}

void* PackedWeights::packed(const void* weights, const dnnl::memory::desc& plain,
                            const dnnl::memory::desc& layout, dnnl::stream& stream) {
  std::vector<Copy>& copies = copies_[static_cast<const std::byte*>(weights)];
  for (const Copy& copy : copies) {
    if (copy.layout == layout) return copy.values.data();
  }
  Buffer values(Device{}, static_cast<int64_t>(layout.get_size()));
  dnnl::memory from(plain, stream.get_engine(), const_cast<void*>(weights));
  dnnl::memory to(layout, stream.get_engine(), values.data());
  dnnl::reorder(from, to).execute(stream, from, to);
  stream.wait();
  return copies.emplace_back(Copy{layout, std::move(values)}).values.data();
}

}  // namespace onebit
