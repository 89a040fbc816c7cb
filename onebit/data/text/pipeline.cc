#include "onebit/data/text/pipeline.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "onebit/data/text/characters.h"
#include "onebit/data/text/utf8.h"
#include "onebit/ground/base/error.h"

namespace onebit::text {
namespace {

constexpr size_t kMaxCachedBytes = 255;

// In the cache a word ends at its first zero byte.
bool is_cacheable(std::string_view word) {
  return word.size() <= kMaxCachedBytes && word.find('\0') == std::string_view::npos;
}

// Blanks of a token's text: white space, or GPT-2's symbol for a blank.
bool is_blank(char32_t c) {
  constexpr char32_t kBlankSymbol = 0x120;
  return c == kBlankSymbol || is_white_space(c);
}

// Calls on_part for the parts of a word that the model splits independently.
template <typename OnPart>
void cut(std::string_view word, std::string_view before, const OnPart& on_part) {
  if (before.empty()) return on_part(word, size_t{0});
  size_t begin = 0;
  for (size_t at = word.find(before); at != std::string_view::npos;) {
    const bool is_run = at >= before.size() && word.substr(at - before.size()).starts_with(before);
    if (at > begin && !is_run) {
      on_part(word.substr(begin, at - begin), begin);
      begin = at;
    }
    at = word.find(before, at + before.size());
  }
  if (begin < word.size()) on_part(word.substr(begin), begin);
}

}  // namespace

Pipeline::Blanks Pipeline::blanks_of(std::string_view token) {
  Blanks blanks;
  bool only_blanks = true;
  while (!token.empty()) {
    const DecodedCharacter c = decode_utf8(token);
    if (is_blank(c.code_point)) {
      blanks.leading += only_blanks ? 1 : 0;
      ++blanks.trailing;
    } else {
      only_blanks = false;
      blanks.trailing = 0;
    }
    token.remove_prefix(c.size_bytes);
  }
  return blanks;
}

Pipeline::Pipeline(std::shared_ptr<const PipelineRules> rules, const std::vector<AddedToken>& added,
                   const std::vector<std::string>& tokens)
    : rules_(std::move(rules)) {
  auto written = std::make_shared<TokenPatterns>(), normalized = std::make_shared<TokenPatterns>();
  NormalizedText text(false), scratch(false);
  // The order decides between tokens with the same normal form: special ones are first.
  for (const bool special : {true, false}) {
    for (const AddedToken& token : added) {
      if (token.special != special) continue;
      if (!token.normalized) {
        written->add(token.content, token);
        continue;
      }
      text.assign(token.content);
      rules_->normalizer.apply(text, scratch);
      require(text.size() > 0,
              "the added token '{}' (id {}) is looked for in normalised text, and its own normal "
              "form is empty; set its \"normalized\" to false",
              token.content, token.id);
      normalized->add(text.text(), token);
    }
  }
  written->sort();
  normalized->sort();
  written_ = std::move(written);
  normalized_ = std::move(normalized);
  if (!rules_->trims_offsets) return;
  std::vector<Blanks> blanks(tokens.size());
  for (size_t id = 0; id < tokens.size(); ++id) blanks[id] = blanks_of(tokens[id]);
  blanks_ = std::make_shared<const std::vector<Blanks>>(std::move(blanks));
}

Pipeline::Pipeline(const Pipeline& other)
    : rules_(other.rules_),
      blanks_(other.blanks_),
      written_(other.written_),
      normalized_(other.normalized_) {}

template <typename OnText, typename OnToken>
void Pipeline::split(std::string_view utf8, bool has_origins, const OnText& on_text,
                     const OnToken& on_token) {
  require(
      utf8.size() <= std::numeric_limits<uint32_t>::max(),
      "a text of {} bytes is too long for 32-bit offsets; encode it in parts smaller than 4 GiB",
      utf8.size());
  has_origins = has_origins || rules_->pre_tokenizer.needs_origins();
  std::vector<Segment> outer, inner;
  NormalizedText text(has_origins), scratch(has_origins);
  Words words(has_origins), other(has_origins);
  written_->find(utf8, outer);
  for (const Segment& one : outer) {
    if (one.id != Segment::kText) {
      const NormalizedText::Range range{static_cast<uint32_t>(one.begin),
                                        static_cast<uint32_t>(one.end)};
      on_token(one.id, range, utf8.substr(one.begin, one.end - one.begin));
      continue;
    }
    text.assign(utf8.substr(one.begin, one.end - one.begin), one.begin);
    rules_->normalizer.apply(text, scratch);
    normalized_->find(text.text(), inner);
    for (const Segment& two : inner) {
      if (two.id != Segment::kText) {
        on_token(two.id, has_origins ? text.raw_range(two.begin, two.end) : NormalizedText::Range{},
                 std::string_view(text.text()).substr(two.begin, two.end - two.begin));
        continue;
      }
      words.text.clear();
      words.text.add(text, two.begin, two.end);
      rules_->pre_tokenizer.apply(words, other);
      on_text(words);
    }
  }
}

void Pipeline::split_word(std::string_view word) {
  std::visit([&](const auto& model) { model.split(word, parts_); }, rules_->model);
}

void Pipeline::add_word_ids(std::string_view word, std::vector<int32_t>& ids) {
  const bool cacheable = is_cacheable(word);
  const PackedIds known = cacheable ? cache_.find(word) : PackedIds();
  if (known.present()) {
    if (known.in_arena()) {
      const auto list = known.arena_ids(cache_.arena());
      ids.insert(ids.end(), list.begin(), list.end());
      return;
    }
    int32_t few[PackedIds::kInline];
    known.unpack(few);
    ids.insert(ids.end(), few, few + known.count());
    return;
  }
  split_word(word);
  word_ids_.clear();
  for (const Piece& part : parts_) word_ids_.push_back(part.id);
  ids.insert(ids.end(), word_ids_.begin(), word_ids_.end());
  if (cacheable) cache_.insert(word, word_ids_);
}

void Pipeline::add_ids(const Words& words, std::vector<int32_t>& ids) {
  const std::string_view text = words.text.text();
  for (const Words::Range& range : words.ranges) {
    cut(text.substr(range.first, range.second - range.first), rules_->cuts_before,
        [&](std::string_view word, size_t) { add_word_ids(word, ids); });
  }
}

void Pipeline::add_tokens(std::string_view utf8, const Words& words, size_t first,
                          std::vector<Piece>& tokens) {
  const std::string_view text = words.text.text();
  for (const Words::Range& range : words.ranges) {
    cut(text.substr(range.first, range.second - range.first), rules_->cuts_before,
        [&](std::string_view word, size_t begin) {
          split_word(word);
          for (const Piece& part : parts_) {
            const size_t at = range.first + begin;
            const NormalizedText::Range raw = words.text.raw_range(at + part.begin, at + part.end);
            Piece token{part.id, raw.begin, raw.end};
            if (rules_->trims_offsets) {
              trim(utf8, (*blanks_)[static_cast<size_t>(part.id)], tokens.size() == first, token);
            }
            tokens.push_back(token);
          }
        });
  }
}

void Pipeline::encode(std::string_view utf8, std::vector<int32_t>& ids) {
  split(
      utf8, false, [&](const Words& words) { add_ids(words, ids); },
      [&](int32_t id, NormalizedText::Range, std::string_view) { ids.push_back(id); });
}

void Pipeline::trim(std::string_view utf8, Blanks blanks, bool is_first, Piece& token) const {
  if (blanks.leading > 0) {
    const bool at_front = is_first || token.begin == 0;
    // A single one may be the tokenizer's own.
    const bool is_own = at_front && blanks.leading == 1 && rules_->adds_prefix_space;
    uint32_t count = is_own ? 0 : blanks.leading;
    for (; count > 0 && token.begin < token.end; --count) {
      token.begin += decode_utf8(utf8.substr(token.begin)).size_bytes;
    }
  }
  for (uint32_t count = blanks.trailing; count > 0 && token.end > token.begin; --count) {
    do {
      --token.end;
    } while (token.end > token.begin && (static_cast<uint8_t>(utf8[token.end]) & 0xC0) == 0x80);
  }
}

void Pipeline::encode_with_offsets(std::string_view utf8, std::vector<Piece>& tokens) {
  const size_t first = tokens.size();
  split(
      utf8, true, [&](const Words& words) { add_tokens(utf8, words, first, tokens); },
      [&](int32_t id, NormalizedText::Range range, std::string_view text) {
        Piece token{id, range.begin, range.end};
        if (rules_->trims_offsets) trim(utf8, blanks_of(text), tokens.size() == first, token);
        tokens.push_back(token);
      });
}

}  // namespace onebit::text
