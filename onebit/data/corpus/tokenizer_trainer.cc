#include "onebit/data/corpus/tokenizer_trainer.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "onebit/data/corpus/pair_merger.h"
#include "onebit/data/corpus/unigram_trainer.h"
#include "onebit/data/text/pieces.h"
#include "onebit/data/text/vocabulary.h"
#include "onebit/data/text/word_cache.h"
#include "onebit/data/tokenizer_files/pipeline_json.h"
#include "onebit/data/tokenizer_files/tokenizer_json.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/printable.h"

namespace onebit::corpus {
namespace {

constexpr size_t kLongestWord = 256;  // bytes
constexpr uint64_t kMinCount = 2;

Json sequence_of(const char* list, std::vector<Json> parts) {
  if (parts.size() == 1) return parts.front();
  return {{"type", "Sequence"}, {list, std::move(parts)}};
}

Json of_type(const char* type) {
  return {{"type", type}};
}

// sentencepiece's treatment of blanks: one stands between words, whatever is written there.
Json blank_for(const char* kind, const char* pattern) {
  return {{"type", "Replace"}, {"pattern", {{kind, pattern}}}, {"content", " "}};
}

Json normalizer_of(VocabularyKind kind, text::Casing casing) {
  const bool is_unigram = kind == VocabularyKind::kUnigram;
  const bool strips = casing == text::Casing::kUncased;
  std::vector<Json> steps;
  if (is_unigram) steps = {blank_for("String", "\n"), blank_for("String", "\t")};
  // Accents are marks of their own in the decomposed form.
  steps.push_back(of_type(is_unigram ? (strips ? "NFKD" : "NFKC") : (strips ? "NFD" : "NFC")));
  if (strips) steps.push_back(of_type("StripAccents"));
  if (casing != text::Casing::kCased) steps.push_back(of_type("Lowercase"));
  if (is_unigram) steps.push_back(blank_for("Regex", " {2,}"));
  return sequence_of("normalizers", std::move(steps));
}

Json byte_level() {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", true}};
}

Json metaspace() {
  return {{"type", "Metaspace"},
          {"replacement", "\xE2\x96\x81"},
          {"prepend_scheme", "always"},
          {"split", true}};
}

int32_t special_id(std::string_view token) {
  return static_cast<int32_t>(std::ranges::find(text::kSpecialTokens, token) -
                              text::kSpecialTokens.begin());
}

Json tokenizer_of(VocabularyKind kind, text::Casing casing, Json model) {
  formats::TokenizerJson tokenizer;
  for (const std::string_view token : text::kSpecialTokens) {
    text::AddedToken added{.id = special_id(token), .content = std::string(token)};
    added.special = true;
    added.lstrip = token == text::kMaskToken;  // the blank before a masked word is part of it
    tokenizer.added.push_back(std::move(added));
  }
  const Json cuts = kind == VocabularyKind::kUnigram ? metaspace() : byte_level();
  return formats::tokenizer_json({{"normalizer", normalizer_of(kind, casing)},
                                  {"pre_tokenizer", cuts},
                                  {"decoder", cuts},
                                  {"model", std::move(model)}},
                                 tokenizer, {});
}

Json unigram_model(std::span<const UnigramPiece> pieces) {
  Json vocabulary = Json::array();
  for (const std::string_view token : text::kSpecialTokens) {
    vocabulary.push_back(Json::array({token, 0.0}));
  }
  for (const UnigramPiece& piece : pieces) {
    vocabulary.push_back(Json::array({piece.text, piece.score}));
  }
  return {{"type", "Unigram"},
          {"unk_id", static_cast<uint32_t>(special_id(text::kUnknownToken))},
          {"vocab", std::move(vocabulary)},
          {"byte_fallback", false}};
}

Json byte_pair_model(const std::vector<std::string>& tokens,
                     const std::vector<PairMerger::Pair>& merges) {
  Json rules = Json::array();
  for (const auto& [left, right] : merges) {
    rules.push_back(Json::array({tokens[left], tokens[right]}));
  }
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", false},
          {"vocab", formats::vocabulary_json(tokens)},
          {"merges", std::move(rules)}};
}

// Bytes in the order of their symbols, as Hugging Face's trainer has them.
std::vector<uint8_t> bytes_in_order() {
  std::vector<uint8_t> bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.push_back(static_cast<uint8_t>(byte));
  std::ranges::sort(bytes, {}, [](uint8_t byte) { return text::byte_symbol(byte); });
  return bytes;
}

std::vector<std::string> first_tokens() {
  std::vector<std::string> tokens(text::kSpecialTokens.begin(), text::kSpecialTokens.end());
  for (const uint8_t byte : bytes_in_order()) tokens.push_back(text::byte_symbol(byte));
  return tokens;
}

Json train_byte_pairs(const WordCounts& words, size_t size) {
  const std::vector<uint8_t> bytes = bytes_in_order();
  // Symbols are bytes. Special tokens get names that no bytes of words have.
  std::vector<std::string> symbols;
  for (const std::string_view token : text::kSpecialTokens) {
    symbols.push_back(std::string(kLongestWord, '\0') + std::string(token));
  }
  std::array<int32_t, 256> symbol_of{};
  for (const uint8_t byte : bytes) {
    symbol_of[byte] = static_cast<int32_t>(symbols.size());
    symbols.emplace_back(1, static_cast<char>(byte));
  }
  require(symbols.size() <= size,
          "vocabulary size {} is too small for the special tokens and the 256 bytes; use at least "
          "{}",
          size, symbols.size());
  PairMerger merger(std::move(symbols), kMinCount, "");
  std::vector<int32_t> spelled;
  for (size_t i = 0; i < words.size(); ++i) {
    spelled.clear();
    for (const char byte : words.word(i)) spelled.push_back(symbol_of[static_cast<uint8_t>(byte)]);
    merger.add_word(spelled, words.count(i));
  }
  const std::vector<std::string> merged = merger.run(size);
  std::vector<std::string> tokens = first_tokens();
  for (size_t id = tokens.size(); id < merged.size(); ++id) {
    std::string token;
    for (const char byte : merged[id]) token += text::byte_symbol(static_cast<uint8_t>(byte));
    tokens.push_back(std::move(token));
  }
  return byte_pair_model(tokens, merger.merges());
}

Json train_unigram_model(const WordCounts& counts, size_t size, int threads) {
  require(size > text::kSpecialTokens.size(), "vocabulary size {} has no room for pieces", size);
  std::vector<WeightedWord> words;
  for (size_t i = 0; i < counts.size(); ++i) words.push_back({counts.word(i), counts.count(i)});
  return unigram_model(
      train_unigram(std::move(words), size - text::kSpecialTokens.size(), threads,
                    [](size_t pieces) { log_info("unigram model: {} pieces", pieces); }));
}

}  // namespace

VocabularyKind vocabulary_kind_from_name(const std::string& name) {
  if (name == "wordpiece") return VocabularyKind::kWordPiece;
  if (name == "unigram") return VocabularyKind::kUnigram;
  require(name == "bpe", "the type of a vocabulary is wordpiece, unigram or bpe, not {}",
          quote(name));
  return VocabularyKind::kBytePairs;
}

TokenizerTrainer::TokenizerTrainer(VocabularyKind kind, text::Casing casing)
    : kind_(kind), casing_(casing) {
  ONEBIT_INVARIANT(kind != VocabularyKind::kWordPiece);
  const Json model =
      kind == VocabularyKind::kUnigram ? unigram_model({}) : byte_pair_model(first_tokens(), {});
  rules_ = formats::parse_pipeline(tokenizer_of(kind, casing, model), "tokenizer").rules;
}

void TokenizerTrainer::add_text(std::string_view utf8) {
  text::NormalizedText whole(false), scratch(false);
  text::Words words(false), other(false);
  std::string line;
  // A line at a time: a normal form of megabytes would not stay in the caches. A line continues
  // where the one before it ended, with a blank between them, as prepare() tokenizes it.
  while (!utf8.empty()) {
    const size_t size = std::min(utf8.find('\n'), utf8.size());
    line.assign(1, ' ').append(utf8.substr(0, size));
    utf8.remove_prefix(std::min(size + 1, utf8.size()));
    whole.assign(line);
    rules_->normalizer.apply(whole, scratch);
    words.text.clear();
    words.text.add(whole, 0, whole.size());
    rules_->pre_tokenizer.apply(words, other);
    const std::string_view text = words.text.text();
    for (const text::Words::Range& range : words.ranges) {
      const std::string_view word = text.substr(range.first, range.second - range.first);
      if (word.size() <= kLongestWord) counts_.add(word, text::hash_word(word));
    }
  }
}

std::string TokenizerTrainer::train(int32_t vocab_size, int threads) const {
  require(counts_.size() > 0, "no words to train a vocabulary on: the text is empty");
  const auto size = static_cast<size_t>(vocab_size);
  Json model = kind_ == VocabularyKind::kUnigram ? train_unigram_model(counts_, size, threads)
                                                 : train_byte_pairs(counts_, size);
  return json_text(tokenizer_of(kind_, casing_, std::move(model)), 2) + "\n";
}

std::string trained_tokenizer_config() {
  const Json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                       // This class gives a model no segments by itself.
                       {"model_input_names", {"input_ids", "token_type_ids", "attention_mask"}},
                       {"pad_token", text::kPadToken},
                       {"unk_token", text::kUnknownToken},
                       {"cls_token", text::kClsToken},
                       {"sep_token", text::kSepToken},
                       {"mask_token", text::kMaskToken}};
  return json_text(config, 2) + "\n";
}

}  // namespace onebit::corpus
