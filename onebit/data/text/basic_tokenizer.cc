#include "onebit/data/text/basic_tokenizer.h"

#include "onebit/data/text/characters.h"
#include "onebit/data/text/normal_form.h"
#include "onebit/data/text/word_scanner.h"

namespace onebit::text {
namespace {

class BasicVisitor {
 public:
  BasicVisitor(const char* text, const Characters& characters, std::vector<BasicWord>& words)
      : text_(text), characters_(characters), words_(words) {}

  void short_word(const char* begin, size_t size, ShortWord) { word({begin, size}); }
  void single(std::string_view raw) { word(raw); }
  size_t punctuation(const char* at, const char*) {
    word({at, 1});
    return 1;
  }
  void word(std::string_view raw) {
    word_.assign(raw, characters_);
    if (word_.text().empty()) return;
    const uint32_t at = static_cast<uint32_t>(raw.data() - text_);
    const NormalizedWord::Range range = word_.raw_range(0, word_.text().size());
    words_.push_back({word_.text(), at + range.begin, at + range.end});
  }

 private:
  const char* text_;
  const Characters& characters_;
  std::vector<BasicWord>& words_;
  NormalizedWord word_;
};

}  // namespace

void BasicTokenizer::split(std::string_view utf8, std::vector<BasicWord>& words) const {
  const Characters& characters = Characters::get(casing_);
  BasicVisitor visitor(utf8.data(), characters, words);
  scan_words(utf8, characters, visitor);
}

}  // namespace onebit::text
