#include "onebit/data/text/sentence_splitter.h"

#include <gtest/gtest.h>
#include <unicode/brkiter.h>
#include <unicode/utext.h>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/philox.h"

namespace onebit::text {
namespace {

using Sentences = std::vector<std::string>;

Sentences split(SentenceSplitter& splitter, std::string_view text) {
  Sentences result;
  for (const std::string_view sentence : splitter.split(text)) result.emplace_back(sentence);
  return result;
}

Sentences split(std::string_view text) {
  SentenceSplitter splitter;
  return split(splitter, text);
}

TEST(SentenceSplitter, SplitsProse) {
  EXPECT_EQ(split("It rained. \u201cDid it?\u201d he asked. Yes!"),
            (Sentences{"It rained.", "\u201cDid it?\u201d he asked.", "Yes!"}));
  EXPECT_EQ(split("It cost 3.50 in all... or so. (He said.) Done"),
            (Sentences{"It cost 3.50 in all... or so.", "(He said.)", "Done"}));
  EXPECT_EQ(split("no end"), Sentences{"no end"});
  EXPECT_EQ(split(""), Sentences{});
  EXPECT_EQ(split(" \n\t"), Sentences{});
}

TEST(SentenceSplitter, LineBreaksAreSpace) {
  EXPECT_EQ(split("  One\nline and\r\nanother. Two\n"),
            (Sentences{"One\nline and\r\nanother.", "Two"}));
}

TEST(SentenceSplitter, AbbreviationsEndNothing) {
  EXPECT_EQ(split("Mr. Brown met Dr. Grey at St. Paul's. They left, e.g. John B. Smith."),
            (Sentences{"Mr. Brown met Dr. Grey at St. Paul's.", "They left, e.g. John B. Smith."}));
  EXPECT_EQ(split("\u201cMr. Brown!\u201d\u2014Mrs.\nGrey"),
            Sentences{"\u201cMr. Brown!\u201d\u2014Mrs.\nGrey"});
  // Whole words only, and no everyday word is an abbreviation.
  EXPECT_EQ(split("He has a MacBook.Mr. X knows. Look Up. It is. Then"),
            (Sentences{"He has a MacBook.Mr. X knows.", "Look Up.", "It is.", "Then"}));
}

TEST(SentenceSplitter, KnowsLanguages) {
  SentenceSplitter german("de"), greek("el");
  EXPECT_EQ(split(german, "Das ist Hr. Meier. Gut."), (Sentences{"Das ist Hr. Meier.", "Gut."}));
  EXPECT_EQ(split(greek, "\u03a4\u03b9; \u039d\u03b1\u03b9."),
            (Sentences{"\u03a4\u03b9;", "\u039d\u03b1\u03b9."}));
  EXPECT_EQ(split("\u4f60\u597d\u3002\u4e16\u754c\u3002"),
            (Sentences{"\u4f60\u597d\u3002", "\u4e16\u754c\u3002"}));
  EXPECT_THROW(SentenceSplitter("xx_nowhere"), Error);
  EXPECT_THROW(SentenceSplitter(""), Error);
}

// The only difference from the rules: a sentence does not start in lower case.
bool begins_in_lower_case(std::string_view text) {
  const auto at = [&](const std::vector<std::string_view>& parts) {
    size_t first = text.size();
    for (const std::string_view part : parts) first = std::min(first, text.find(part));
    return first;
  };
  return at({"a", "b", "\u00e9"}) <
         at({"A", "B", "M", "\u00c9", "\u5b57", ".", "!", "?", "\u3002", "\u2024"});
}

Sentences icu_split(icu::BreakIterator& iterator, const std::string& text) {
  UErrorCode status = U_ZERO_ERROR;
  UText utext = UTEXT_INITIALIZER;
  utext_openUTF8(&utext, text.data(), static_cast<int64_t>(text.size()), &status);
  iterator.setText(&utext, status);
  Sentences result;
  int32_t begin = 0;
  for (int32_t end = iterator.next(); end != icu::BreakIterator::DONE; end = iterator.next()) {
    if (begins_in_lower_case(std::string_view(text).substr(static_cast<size_t>(end)))) continue;
    std::string sentence =
        text.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
    for (const std::string space : {" ", "\u3000", " ", "\u3000", " ", "\u3000", " "}) {
      while (sentence.starts_with(space)) sentence.erase(0, space.size());
      while (sentence.ends_with(space)) sentence.erase(sentence.size() - space.size());
    }
    if (!sentence.empty()) result.push_back(sentence);
    begin = end;
  }
  utext_close(&utext);
  return result;
}

// ICU's own iterator over the same rules. Japanese has no list of abbreviations.
TEST(SentenceSplitter, EqualsIcuWithoutAbbreviations) {
  UErrorCode status = U_ZERO_ERROR;
  const std::unique_ptr<icu::BreakIterator> iterator(
      icu::BreakIterator::createSentenceInstance(icu::Locale("ja"), status));
  ASSERT_TRUE(U_SUCCESS(status));
  SentenceSplitter splitter("ja");
  // Every class of Annex 29 but line ends, in one and in several bytes.
  const std::vector<std::string> parts = {
      " ",      " ",      "a",      "b",      "A",      "B",      "5",      ".",
      ".",      ".",      "!",      "?",      ",",      "-",      ":",      "\"",
      ")",      "(",      "\u00e9", "\u00c9", "\u5b57", "\u3002", "\u201d", "\u2014",
      "\u0301", "\u00ad", "\u2024", "\u3000", "\u0661", "*",      "\u20ac", "Mr"};
  RandomSequence random(9, 0, 0);
  for (int i = 0; i < 20000; ++i) {
    std::string text;
    for (uint32_t n = random.below(16); n > 0; --n) {
      text += parts[random.below(static_cast<uint32_t>(parts.size()))];
    }
    ASSERT_EQ(split(splitter, text), icu_split(*iterator, text)) << text;
  }
}

TEST(SentenceSplitter, TakesAnyBytes) {
  SentenceSplitter splitter;
  RandomSequence random(9, 1, 0);
  for (int i = 0; i < 5000; ++i) {
    std::string text(random.below(40), '\0');
    for (char& c : text) c = static_cast<char>(random.below(4) == 0 ? '.' : random.below(256));
    size_t end = 0;
    for (const std::string_view sentence : splitter.split(text)) {
      const size_t begin = static_cast<size_t>(sentence.data() - text.data());
      ASSERT_GE(begin, end);
      ASSERT_FALSE(sentence.empty());
      end = begin + sentence.size();
      ASSERT_LE(end, text.size());
    }
  }
}

}  // namespace
}  // namespace onebit::text
