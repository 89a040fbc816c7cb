#include "onebit/text/sentence_splitter.h"

#include <unicode/brkiter.h>
#include <unicode/filteredbrk.h>
#include <unicode/locid.h>
#include <unicode/utext.h>

#include <algorithm>

#include "onebit/base/error.h"

namespace onebit::text {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

class SentenceSplitter::Body {
 public:
  explicit Body(const std::string& name) {
    const icu::Locale locale(name.c_str());
    int32_t count = 0;
    const icu::Locale* known = icu::BreakIterator::getAvailableLocales(count);
    const bool found = std::any_of(known, known + count, [&](const icu::Locale& l) {
      return std::string_view(l.getLanguage()) == locale.getLanguage();
    });
    require(!name.empty() && found,
            "sentence splitting: no locale '{}' in ICU; use a language code such as 'en'", name);
    UErrorCode status = U_ZERO_ERROR;
    std::unique_ptr<icu::BreakIterator> plain(
        icu::BreakIterator::createSentenceInstance(locale, status));
    require(U_SUCCESS(status), "sentence splitting: ICU has no rules for locale '{}': {}", name,
            u_errorName(status));
    std::unique_ptr<icu::FilteredBreakIteratorBuilder> builder(
        icu::FilteredBreakIteratorBuilder::createInstance(locale, status));
    require(U_SUCCESS(status), "sentence splitting: no abbreviations for locale '{}' in ICU: {}",
            name, u_errorName(status));
    iterator.reset(builder->build(plain.release(), status));
    require(U_SUCCESS(status), "sentence splitting: ICU failed for locale '{}': {}", name,
            u_errorName(status));
  }
  ~Body() { utext_close(&text); }
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;

  std::unique_ptr<icu::BreakIterator> iterator;
  UText text = UTEXT_INITIALIZER;
  std::string one_line;
};

SentenceSplitter::SentenceSplitter(const std::string& locale)
    : body_(std::make_unique<Body>(locale)) {}
SentenceSplitter::~SentenceSplitter() = default;
SentenceSplitter::SentenceSplitter(SentenceSplitter&&) noexcept = default;
SentenceSplitter& SentenceSplitter::operator=(SentenceSplitter&&) noexcept = default;

std::vector<std::string_view> SentenceSplitter::split(std::string_view paragraph) {
  Body& body = *body_;
  body.one_line.assign(paragraph);
  std::replace_if(body.one_line.begin(), body.one_line.end(), is_space, ' ');
  UErrorCode status = U_ZERO_ERROR;
  utext_openUTF8(&body.text, body.one_line.data(), static_cast<int64_t>(body.one_line.size()),
                 &status);
  body.iterator->setText(&body.text, status);
  require(U_SUCCESS(status), "sentence splitting: ICU failed: {}", u_errorName(status));

  std::vector<std::string_view> sentences;
  int32_t begin = body.iterator->first();
  for (int32_t end = body.iterator->next(); end != icu::BreakIterator::DONE;
       begin = end, end = body.iterator->next()) {
    const std::string_view sentence =
        trimmed(paragraph.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
    if (!sentence.empty()) sentences.push_back(sentence);
  }
  return sentences;
}

}  // namespace onebit::text
