// Splits a raw word into token ids and caches them. Used for tokenizing with and without the cache.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "onebit/data/text/added_token_finder.h"
#include "onebit/data/text/characters.h"
#include "onebit/data/text/normal_form.h"
#include "onebit/data/text/vocabulary.h"
#include "onebit/data/text/word_cache.h"
#include "onebit/data/text/word_piece.h"
#include "onebit/data/text/word_scanner.h"

namespace onebit::text {

// The data that depend only on the vocabulary. Threads share them.
struct SplitterModel {
  SplitterModel(std::shared_ptr<const Vocabulary> vocabulary, Casing casing);

  std::shared_ptr<const Vocabulary> vocabulary;
  WordPiece word_piece;
  const Characters& characters;
  std::array<int32_t, 128> punctuation_ids;  // by ASCII byte
  std::vector<uint32_t> token_bytes;         // by id, without "##"
  // Null if only BERT's special tokens are looked for in the text, which the scan itself does.
  std::shared_ptr<const AddedTokenFinder> finder;
};

class WordSplitter {
 public:
  explicit WordSplitter(std::shared_ptr<const SplitterModel> model);

  const SplitterModel& model() const { return *model_; }
  const std::shared_ptr<const SplitterModel>& shared_model() const { return model_; }

  // The packed ids of a short word. Ids in the arena are valid until the next call. Leaves
  // normalized() and parts() undefined.
  PackedIds short_word(size_t size, ShortWord word) {
    if (lower_cases_) word = {lower_case(word.low), lower_case(word.high)};
    const PackedIds ids = word.high == 0 ? cache_.find(word.low) : cache_.find(word.low, word.high);
    return ids.present() ? ids : new_short_word(size, word);
  }
  std::span<const int32_t> arena_ids(PackedIds ids) const { return ids.arena_ids(cache_.arena()); }

  // The ids of any word, valid until the next call.
  std::span<const int32_t> ids(std::string_view raw);

  // Splits any word without the cache. normalized() and parts() then belong to `raw`.
  void split(std::string_view raw);
  const NormalizedWord& normalized() const { return normalized_; }
  const std::vector<WordPart>& parts() const { return parts_; }

 private:
  PackedIds new_short_word(size_t size, ShortWord word);
  std::span<const int32_t> part_ids();

  std::shared_ptr<const SplitterModel> model_;
  bool lower_cases_;
  WordCache cache_;
  NormalizedWord normalized_;
  std::vector<WordPart> parts_;
  std::vector<int32_t> ids_;
};

}  // namespace onebit::text
