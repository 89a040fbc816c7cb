#include "onebit/data/text/word_cache.h"

#include <array>
#include <cstring>

namespace onebit::text {

namespace {

// About 10 MiB in total.
constexpr size_t kMaxWords = size_t{1} << 17;
constexpr size_t kMaxArenaIds = size_t{1} << 20;

template <size_t kHalves>
std::array<uint64_t, kHalves> key_of(std::string_view word) {
  std::array<uint64_t, kHalves> key{};
  std::memcpy(key.data(), word.data(), word.size());
  return key;
}

}  // namespace

PackedIds WordCache::find(std::string_view word) const {
  if (word.size() <= 8) return short_.find(key_of<1>(word));
  if (word.size() <= 16) return medium_.find(key_of<2>(word));
  const auto found = long_.find(word);
  return found == long_.end() ? PackedIds() : found->second;
}

PackedIds WordCache::insert(std::string_view word, std::span<const int32_t> ids) {
  if (short_.size() + medium_.size() + long_.size() >= kMaxWords ||
      arena_.size() + ids.size() > kMaxArenaIds) {
    *this = WordCache();
  }
  const PackedIds packed(ids, arena_);
  if (word.size() <= 8) {
    short_.insert(key_of<1>(word), packed);
  } else if (word.size() <= 16) {
    medium_.insert(key_of<2>(word), packed);
  } else {
    long_.emplace(word, packed);
  }
  return packed;
}

}  // namespace onebit::text
