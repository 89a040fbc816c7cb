#include "onebit/apps/squad/normalized_answer.h"

#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include "onebit/apps/squad/python_space.h"
#include "onebit/data/text/utf8.h"

namespace onebit::squad {
namespace {

bool is_ascii_punctuation(char32_t c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
         (c >= '{' && c <= '~');
}

// Python's \w without the underscore, which has been removed already: letters and characters with a
// numeric value.
bool is_word_character(char32_t c) {
  const auto code_point = static_cast<UChar32>(c);
  return u_isalpha(code_point) != 0 ||
         u_getIntPropertyValue(code_point, UCHAR_NUMERIC_TYPE) != U_NT_NONE;
}

bool is_article(std::string_view word) {
  return word == "a" || word == "an" || word == "the";
}

std::string lower_case(std::string_view utf8) {
  std::string lowered;
  icu::UnicodeString::fromUTF8({utf8.data(), static_cast<int32_t>(utf8.size())})
      .toLower(icu::Locale::getRoot())
      .toUTF8String(lowered);
  return lowered;
}

// Collects characters; drops articles when their run of word characters ends.
class AnswerWords {
 public:
  void add(char32_t c) {
    if (is_python_space(c)) {
      end_word();
    } else {
      const bool is_part = is_word_character(c);
      if (!is_part) end_run();
      text::append_utf8(c, is_part ? run_ : word_);
    }
  }
  std::vector<std::string> finish() {
    end_word();
    return std::move(words_);
  }

 private:
  void end_run() {
    if (is_article(run_)) {
      if (!word_.empty()) words_.push_back(std::move(word_));
      word_.clear();
    } else {
      word_ += run_;
    }
    run_.clear();
  }
  void end_word() {
    end_run();
    if (!word_.empty()) words_.push_back(std::move(word_));
    word_.clear();
  }

  std::vector<std::string> words_;
  std::string word_, run_;
};

}  // namespace

std::vector<std::string> answer_words(std::string_view utf8) {
  const std::string lowered = lower_case(utf8);
  AnswerWords words;
  for (std::string_view rest = lowered; !rest.empty();) {
    const text::DecodedCharacter c = text::decode_utf8(rest);
    if (!is_ascii_punctuation(c.code_point)) words.add(c.code_point);
    rest.remove_prefix(c.size_bytes);
  }
  return words.finish();
}

std::string normalized_answer(std::string_view utf8) {
  std::string text;
  for (const std::string& word : answer_words(utf8)) {
    if (!text.empty()) text += ' ';
    text += word;
  }
  return text;
}

}  // namespace onebit::squad
