#include "onebit/data/text/added_token_finder.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "onebit/data/text/utf8.h"
#include "onebit/data/text/vocabulary.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"

namespace onebit::text {

// No text has a longer one, and every place of a text is compared with all of them.
static constexpr size_t kMaxAddedTokenBytes = 4096;

bool is_found_as_written(const AddedToken& token) {
  return !token.single_word && !token.lstrip && !token.rstrip && !token.normalized;
}

Json added_token_json(const AddedToken& token) {
  return {{"id", token.id},          {"content", token.content}, {"single_word", token.single_word},
          {"lstrip", token.lstrip},  {"rstrip", token.rstrip},   {"normalized", token.normalized},
          {"special", token.special}};
}

AddedToken read_added_token(JsonReader& reader) {
  AddedToken token;
  token.content = reader.text("content", "");
  require(!token.content.empty(), "{}: must be the text of the token", reader.place("content"));
  require(token.content.size() <= kMaxAddedTokenBytes,
          "{} has {} bytes; an added token has at most {}", reader.place("content"),
          token.content.size(), kMaxAddedTokenBytes);
  token.special = reader.boolean("special", false);
  token.single_word = reader.boolean("single_word", false);
  token.lstrip = reader.boolean("lstrip", false);
  token.rstrip = reader.boolean("rstrip", false);
  token.normalized = reader.boolean("normalized", !token.special);
  reader.accept("__type");  // written by transformers: "AddedToken"
  reader.finish();
  return token;
}

void take_last_ids(const std::vector<std::string>& tokens, std::vector<AddedToken>& added) {
  std::unordered_map<std::string, int32_t> last;
  for (const AddedToken& token : added) {
    const auto at = static_cast<size_t>(token.id);
    if (token.id >= 0 && at < tokens.size() && tokens[at] == token.content) {
      last.emplace(token.content, token.id);
    }
  }
  if (last.empty()) return;
  for (size_t id = 0; id < tokens.size(); ++id) {
    const auto found = last.find(tokens[id]);
    if (found != last.end()) found->second = static_cast<int32_t>(id);
  }
  for (AddedToken& token : added) {
    const auto found = last.find(token.content);
    if (found != last.end() && tokens[static_cast<size_t>(token.id)] == token.content) {
      token.id = found->second;
    }
  }
}

namespace {

// The classes \w and \s of regular expressions (Unicode Technical Standard 18).
bool is_word_character(char32_t code_point) {
  const auto c = static_cast<UChar32>(code_point);
  return u_hasBinaryProperty(c, UCHAR_ALPHABETIC) != 0 ||
         (U_MASK(u_charType(c)) & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) != 0 ||
         u_hasBinaryProperty(c, UCHAR_JOIN_CONTROL) != 0;
}

bool is_inside_word(std::string_view before, std::string_view behind) {
  return (!before.empty() && is_word_character(last_character(before).code_point)) ||
         (!behind.empty() && is_word_character(decode_utf8(behind).code_point));
}

size_t spaces_at_front(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const DecodedCharacter c = decode_utf8(text.substr(at));
    if (!is_white_space(c.code_point)) break;
    at += c.size_bytes;
  }
  return at;
}

}  // namespace

void TokenPatterns::add(std::string text, const AddedToken& token) {
  patterns_.push_back({std::move(text), token});
}

void TokenPatterns::sort() {
  std::stable_sort(patterns_.begin(), patterns_.end(),
                   [](const Pattern& a, const Pattern& b) { return a.text < b.text; });
  const auto last =
      std::unique(patterns_.begin(), patterns_.end(),
                  [](const Pattern& a, const Pattern& b) { return a.text == b.text; });
  patterns_.erase(last, patterns_.end());
  size_t at = 0;
  for (size_t byte = 0; byte < first_.size(); ++byte) {
    while (at < patterns_.size() && static_cast<uint8_t>(patterns_[at].text[0]) < byte) ++at;
    first_[byte] = static_cast<uint32_t>(at);
  }
}

const TokenPatterns::Pattern* TokenPatterns::longest_at(std::string_view text) const {
  const auto byte = static_cast<uint8_t>(text[0]);
  auto begin = patterns_.begin() + first_[byte], end = patterns_.begin() + first_[byte + size_t{1}];
  const Pattern* longest = nullptr;
  // Before each turn all patterns in [begin, end) begin with the first `size` bytes of the text.
  for (size_t size = 1; begin != end; ++size) {
    if (begin->text.size() == size) longest = &*begin++;
    if (size == text.size()) break;
    const auto next = static_cast<uint8_t>(text[size]);
    const auto byte_of = [&](const Pattern& p) { return static_cast<uint8_t>(p.text[size]); };
    begin = std::partition_point(begin, end, [&](const Pattern& p) { return byte_of(p) < next; });
    end = std::partition_point(begin, end, [&](const Pattern& p) { return byte_of(p) == next; });
  }
  return longest;
}

AddedTokenFinder::AddedTokenFinder(const std::vector<AddedToken>& tokens,
                                   const Characters& characters)
    : characters_(characters) {
  NormalizedText normal;
  // The order decides between tokens with the same normal form: special ones are first.
  for (const bool special : {true, false}) {
    for (const AddedToken& token : tokens) {
      if (token.special != special) continue;
      if (!token.normalized) {
        written_.add(token.content, token);
        continue;
      }
      normal.assign(token.content, characters);
      require(!normal.text().empty(),
              "the added token '{}' (id {}) is looked for in normalised text, and its own normal "
              "form is empty; set its \"normalized\" to false",
              token.content, token.id);
      normalized_.add(normal.text(), token);
    }
  }
  written_.sort();
  normalized_.sort();
}

std::shared_ptr<const AddedTokenFinder> AddedTokenFinder::of(const Vocabulary& vocabulary,
                                                             Casing casing) {
  if (vocabulary.is_plain()) return nullptr;
  return std::make_shared<const AddedTokenFinder>(vocabulary.added(), Characters::get(casing));
}

void TokenPatterns::find(std::string_view text, std::vector<Segment>& segments) const {
  segments.clear();
  size_t done = 0;  // the end of the last segment
  for (size_t at = 0; at < text.size();) {
    const auto byte = static_cast<uint8_t>(text[at]);
    const bool may_begin = first_[byte] != first_[byte + size_t{1}];
    const Pattern* found = may_begin ? longest_at(text.substr(at)) : nullptr;
    if (found == nullptr) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + found->text.size();
    at = end;
    const AddedToken& token = found->token;
    if (token.single_word && is_inside_word(text.substr(0, begin), text.substr(end))) continue;
    if (token.lstrip) begin = std::max(without_spaces_at_end(text.substr(0, begin)).size(), done);
    if (token.rstrip) end += spaces_at_front(text.substr(end));
    if (begin >= end) continue;  // an earlier token with `rstrip` has taken it
    if (done < begin) segments.push_back({done, begin, Segment::kText});
    segments.push_back({begin, end, token.id});
    done = end;
  }
  if (done < text.size()) segments.push_back({done, text.size(), Segment::kText});
}

}  // namespace onebit::text
