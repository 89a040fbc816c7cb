#include "onebit/math/device/onednn_packed_weights.h"

#include <algorithm>
#include <iterator>

#include "onebit/ground/base/error.h"

namespace onebit {

void PackedWeights::add(const void* begin, const void* end) {
  const auto* past = static_cast<Address>(end);
  Range& range = ranges_.try_emplace(static_cast<Address>(begin), Range{past, 0, {}}).first->second;
  ONEBIT_INVARIANT(range.end == past);
  ++range.users;
}

void PackedWeights::changed(const void* begin) {
  for (auto& [weights, copies] : ranges_.at(static_cast<Address>(begin)).copies) {
    for (Copy& copy : copies) copy.current = false;
  }
}

void PackedWeights::remove(const void* begin) {
  const auto range = ranges_.find(static_cast<Address>(begin));
  if (--range->second.users == 0) ranges_.erase(range);
}

PackedWeights::Ranges::const_iterator PackedWeights::range_of(const void* weights) const {
  const auto* address = static_cast<Address>(weights);
  const auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return ranges_.end();
  const auto range = std::prev(after);
  return address < range->second.end ? range : ranges_.end();
}

bool PackedWeights::covers(const void* weights) const {
  return range_of(weights) != ranges_.end();
}

void* PackedWeights::packed(const void* weights, const dnnl::memory::desc& plain,
                            const dnnl::memory::desc& layout, dnnl::stream& stream) {
  const auto* address = static_cast<Address>(weights);
  std::vector<Copy>& copies = ranges_.at(range_of(weights)->first).copies[address];
  auto copy = std::find_if(copies.begin(), copies.end(), [&](const Copy& known) {
    return known.plain == plain && known.layout == layout;
  });
  if (copy == copies.end()) {
    copies.push_back({plain, layout, Buffer(Device{}, static_cast<int64_t>(layout.get_size()))});
    copy = std::prev(copies.end());
  }
  if (!copy->current) {
    dnnl::memory from(plain, stream.get_engine(), const_cast<void*>(weights));
    dnnl::memory to(layout, stream.get_engine(), copy->values.data());
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
    copy->current = true;
  }
  return copy->values.data();
}

}  // namespace onebit
