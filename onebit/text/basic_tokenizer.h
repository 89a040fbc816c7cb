// BERT's basic tokenizer: text to normalised words, before WordPiece.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/text/casing.h"

namespace onebit::text {

// A normalised word and the byte range of the original UTF-8 text it stands for.
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
