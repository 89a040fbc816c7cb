#include "onebit/data/text/word_scanner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace onebit::text {
namespace {

// Records its input. Recognizes "[MASK]" as a special token.
struct Recorder {
  void short_word(const char* begin, size_t size, ShortWord word) {
    char bytes[16];
    std::memcpy(bytes, &word.low, 8);
    std::memcpy(bytes + 8, &word.high, 8);
    std::string packed(bytes, 16);
    EXPECT_EQ(packed.substr(0, size), std::string(begin, size));
    EXPECT_EQ(packed.substr(size), std::string(16 - size, '\0'));
    seen.push_back("short " + std::string(begin, size));
  }
  void word(std::string_view raw) { seen.push_back("word " + std::string(raw)); }
  void single(std::string_view raw) { seen.push_back("single " + std::string(raw)); }
  size_t punctuation(const char* at, const char* end) {
    const std::string_view rest(at, static_cast<size_t>(end - at));
    const size_t size = rest.starts_with("[MASK]") ? 6 : 1;
    seen.push_back("punctuation " + std::string(rest.substr(0, size)));
    return size;
  }

  std::vector<std::string> seen;
};

std::vector<std::string> scanned(std::string_view text) {
  Recorder recorder;
  scan_words(text, Characters::get(Casing::kUncased), recorder);
  return recorder.seen;
}

using testing::ElementsAre;

TEST(WordScanner, FindsWordsOfEverySize) {
  EXPECT_THAT(scanned(""), ElementsAre());
  EXPECT_THAT(scanned(" \t a1 bcdefgh\nijklmnopq  r"),
              ElementsAre("short a1", "short bcdefgh", "short ijklmnopq", "short r"));
  const std::string sixteen(16, 'x'), seventeen(17, 'y');
  EXPECT_THAT(scanned(sixteen + " " + seventeen + "."),
              ElementsAre("short " + sixteen, "word " + seventeen, "punctuation ."));
}

// A short word is one that only ASCII follows.
TEST(WordScanner, KeepsTheLettersOfAWordTogether) {
  EXPECT_THAT(scanned("caf\u00e9s caf\u00e9,x"),
              ElementsAre("word caf\u00e9s", "word caf\u00e9", "punctuation ,", "short x"));
  EXPECT_THAT(scanned("a\u00a0b\u2014c\u4e2dd"), ElementsAre("word a", "word b", "single \u2014",
                                                             "word c", "single \u4e2d", "short d"));
}

TEST(WordScanner, ConsumesWhatTheVisitorTakes) {
  EXPECT_THAT(scanned("a[MASK]b[x"),
              ElementsAre("short a", "punctuation [MASK]", "short b", "punctuation [", "short x"));
}

}  // namespace
}  // namespace onebit::text
