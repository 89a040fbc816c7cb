#include "onebit/text/word_cache.h"

#include <algorithm>
#include <bit>

#include "onebit/text/word_hash.h"

namespace onebit::text {
namespace {

constexpr size_t kFirstEntries = size_t{1} << 12;
constexpr size_t kMostEntries = size_t{1} << 18;  // 8 MiB
constexpr size_t kMostArenaBytes = size_t{1} << 23;

int shift_for(size_t entries) {
  return 64 - std::countr_zero(entries);
}

}  // namespace

WordCache::WordCache()
    : entries_(kFirstEntries), mask_(kFirstEntries - 1), shift_(shift_for(kFirstEntries)) {}

WordCache::Key WordCache::key_of(std::string_view word) {
  Key key{0, 0};
  std::memcpy(&key.low, word.data(), std::min<size_t>(word.size(), 8));
  if (word.size() > 8) std::memcpy(&key.high, word.data() + 8, word.size() - 8);
  return key;
}

bool WordCache::holds(const Entry& entry, uint64_t hash, std::string_view word) const {
  if (entry.key.low != hash || (entry.key.high & kHashedMark) != kHashedMark) return false;
  const size_t size = (entry.key.high >> 32) & 0xFFFFFF;
  const size_t offset = entry.key.high & 0xFFFFFFFF;
  return size == word.size() && std::memcmp(word_arena_.data() + offset, word.data(), size) == 0;
}

const WordCache::Entry* WordCache::find(std::string_view word) const {
  if (word.size() <= 16) return find(key_of(word));
  const uint64_t hash = hash_word(word);
  for (size_t i = slot({hash, 0});; i = (i + 1) & mask_) {
    if (holds(entries_[i], hash, word)) return &entries_[i];
    if (entries_[i].key.low == 0) return nullptr;
  }
}

size_t WordCache::slot_of(const Entry& entry) const {
  const bool hashed = (entry.key.high & kHashedMark) == kHashedMark;
  return slot(hashed ? Key{entry.key.low, 0} : entry.key);
}

void WordCache::make_room() {
  const bool arenas_full = word_arena_.size() + id_arena_.size() * 4 > kMostArenaBytes;
  if (!arenas_full && 2 * (used_ + 1) <= entries_.size()) return;
  if (arenas_full || entries_.size() == kMostEntries) {
    std::fill(entries_.begin(), entries_.end(), Entry{});
    word_arena_.clear();
    id_arena_.clear();
    used_ = 0;
    return;
  }
  std::vector<Entry> old(4 * entries_.size());
  old.swap(entries_);
  mask_ = entries_.size() - 1;
  shift_ = shift_for(entries_.size());
  for (const Entry& entry : old) {
    if (entry.key.low == 0) continue;
    size_t i = slot_of(entry);
    while (entries_[i].key.low != 0) i = (i + 1) & mask_;
    entries_[i] = entry;
  }
}

WordCache::Entry* WordCache::place(Key key, size_t from, std::span<const int32_t> ids) {
  size_t i = from;
  while (entries_[i].key.low != 0) i = (i + 1) & mask_;
  Entry& entry = entries_[i];
  entry.key = key;
  entry.count = static_cast<uint32_t>(ids.size());
  if (entry.count <= kInlineIds) {
    std::copy(ids.begin(), ids.end(), entry.ids);
  } else {
    entry.ids[0] = static_cast<int32_t>(id_arena_.size());
    id_arena_.insert(id_arena_.end(), ids.begin(), ids.end());
  }
  ++used_;
  return &entry;
}

const WordCache::Entry* WordCache::insert(Key key, std::span<const int32_t> ids) {
  make_room();
  return place(key, slot(key), ids);
}

const WordCache::Entry* WordCache::insert(std::string_view word, std::span<const int32_t> ids) {
  if (word.size() <= 16) return insert(key_of(word), ids);
  make_room();
  const uint64_t hash = hash_word(word);
  const Key key{hash, kHashedMark | (uint64_t{word.size()} << 32) | word_arena_.size()};
  word_arena_.append(word);
  return place(key, slot({hash, 0}), ids);
}

}  // namespace onebit::text
