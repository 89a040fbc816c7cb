#include "onebit/text/word_splitter.h"

#include <algorithm>
#include <utility>

namespace onebit::text {
namespace {

constexpr size_t kMostCachedBytes = 255;

// A key ends at its first zero byte, and the bytes from F8 on, which UTF-8 does not have, mark
// hashed keys.
bool is_cacheable(std::string_view raw) {
  return raw.size() <= kMostCachedBytes && std::all_of(raw.begin(), raw.end(), [](char c) {
           return c != '\0' && static_cast<uint8_t>(c) < 0xF8;
         });
}

}  // namespace

SplitterModel::SplitterModel(std::shared_ptr<const Vocabulary> v, Casing casing)
    : vocabulary(std::move(v)),
      word_piece(*vocabulary),
      characters(Characters::get(casing)),
      punctuation_ids{} {
  for (size_t i = 0; i < punctuation_ids.size(); ++i) {
    const char byte = static_cast<char>(i);
    punctuation_ids[i] =
        vocabulary->find(std::string_view(&byte, 1)).value_or(vocabulary->unknown_id());
  }
  token_bytes.reserve(static_cast<size_t>(vocabulary->size()));
  for (int32_t id = 0; id < vocabulary->size(); ++id) {
    const size_t prefix_bytes = vocabulary->is_continuation(id) ? 2 : 0;
    token_bytes.push_back(static_cast<uint32_t>(vocabulary->token(id).size() - prefix_bytes));
  }
}

WordSplitter::WordSplitter(std::shared_ptr<const SplitterModel> model)
    : model_(std::move(model)), uncased_(model_->characters.casing() == Casing::kUncased) {}

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

std::span<const int32_t> WordSplitter::split_ids(std::string_view raw) {
  split(raw);
  ids_.clear();
  for (const WordPart& part : parts_) ids_.push_back(part.id);
  return ids_;
}

std::span<const int32_t> WordSplitter::ids(std::string_view raw) {
  if (!is_cacheable(raw)) return split_ids(raw);
  if (const WordCache::Entry* entry = cache_.find(raw)) return cache_.ids(*entry);
  return cache_.ids(*cache_.insert(raw, split_ids(raw)));
}

}  // namespace onebit::text
