// BERT's basic tokenizer (Devlin et al. 2019): splits text into normalised words, before WordPiece.
//
// - Bytes that are not UTF-8, U+0000, U+FFFD and control characters are dropped. They end no word.
// - White space ends a word.
// - A punctuation character and a CJK ideograph are words of their own.
// - Uncased text is decomposed, put into canonical order, stripped of accents and lower-cased;
//   lower-cased text is lower-cased only, cased text is unchanged (normal_form.cc).
//
// The classes of characters are in unicode_classes.h, the normal forms in unicode_mapping.h. Where
// references differ, both follow Hugging Face's `tokenizers`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/data/text/casing.h"

namespace onebit::text {

// A normalised word and the byte range of the original UTF-8 text that it represents.
struct BasicWord {
  std::string text;
  uint32_t begin, end;

  bool operator==(const BasicWord&) const = default;
};

class BasicTokenizer {
 public:
  explicit BasicTokenizer(Casing casing) : casing_(casing) {}
  // Appends the words of `utf8`.
  void split(std::string_view utf8, std::vector<BasicWord>& words) const;
  Casing casing() const { return casing_; }

 private:
  Casing casing_;
};

}  // namespace onebit::text
