#include "onebit/data/text/word_splitter.h"

#include <cstring>
#include <utility>

namespace onebit::text {
namespace {

constexpr size_t kMaxCachedBytes = 255;

// In the cache a word ends at its first zero byte.
bool is_cacheable(std::string_view raw) {
  return raw.size() <= kMaxCachedBytes && raw.find('\0') == std::string_view::npos;
}

}  // namespace

SplitterModel::SplitterModel(std::shared_ptr<const Vocabulary> v, Casing casing)
    : vocabulary(std::move(v)),
      word_piece(*vocabulary),
      characters(Characters::get(casing)),
      punctuation_ids{} {
  for (size_t i = 0; i < punctuation_ids.size(); ++i) {
    const char byte = static_cast<char>(i);
    const auto id = vocabulary->find(std::string_view(&byte, 1));
    const bool is_of_model = id && *id < vocabulary->model_size();
    punctuation_ids[i] = is_of_model ? *id : vocabulary->unknown_id();
  }
  token_bytes.reserve(vocabulary->size());
  for (int32_t id = 0; id < vocabulary->size(); ++id) {
    const size_t prefix_bytes = vocabulary->is_continuation(id) ? 2 : 0;
    token_bytes.push_back(static_cast<uint32_t>(vocabulary->token(id).size() - prefix_bytes));
  }
  finder = AddedTokenFinder::of(*vocabulary, casing);
}

WordSplitter::WordSplitter(std::shared_ptr<const SplitterModel> model)
    : model_(std::move(model)), lower_cases_(model_->characters.casing() != Casing::kCased) {}

void WordSplitter::split(std::string_view raw) {
  normalized_.assign(raw, model_->characters);
  parts_.clear();
  const std::string& word = normalized_.text();
  if (normalized_.characters() > kMaxWordCharacters) {
    parts_.push_back({model_->vocabulary->unknown_id(), static_cast<uint32_t>(word.size())});
  } else if (!word.empty()) {
    model_->word_piece.split(word, parts_);
  }
}

std::span<const int32_t> WordSplitter::part_ids() {
  ids_.clear();
  for (const WordPart& part : parts_) ids_.push_back(part.id);
  return ids_;
}

PackedIds WordSplitter::new_short_word(size_t size, ShortWord word) {
  // ASCII in lower case is its own normalised form.
  char bytes[16];
  std::memcpy(bytes, &word.low, 8);
  std::memcpy(bytes + 8, &word.high, 8);
  const std::string_view normal(bytes, size);
  model_->word_piece.split(normal, parts_);
  return cache_.insert(normal, part_ids());
}

std::span<const int32_t> WordSplitter::ids(std::string_view raw) {
  const bool cacheable = is_cacheable(raw);
  const PackedIds known = cacheable ? cache_.find(raw) : PackedIds();
  if (!known.present()) {
    split(raw);
    const std::span<const int32_t> ids = part_ids();
    if (cacheable) cache_.insert(raw, ids);
    return ids;
  }
  if (known.in_arena()) return arena_ids(known);
  ids_.resize(PackedIds::kInline);
  known.unpack(ids_.data());
  ids_.resize(known.count());
  return ids_;
}

}  // namespace onebit::text
