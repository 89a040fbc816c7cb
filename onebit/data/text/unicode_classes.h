// The class of each code point for BERT's basic tokenizer, as range tables in ascending order. They
// follow Hugging Face's `tokenizers`, not the newest Unicode.
#pragma once

#include <span>

namespace onebit::text {

struct CodePointRange {
  char32_t first, last;
};

std::span<const CodePointRange> spaces();
// Controls, formats, private use, U+0000 and U+FFFD: dropped without leaving a space.
std::span<const CodePointRange> dropped();
// Each is a word of its own.
std::span<const CodePointRange> ideographs();
std::span<const CodePointRange> punctuation();
// Letters that become punctuation when lower-cased and stripped of accents.
std::span<const CodePointRange> uncased_punctuation();
// Accents that the uncased form removes.
std::span<const CodePointRange> stripped();
// Marks that the uncased form keeps and that canonical ordering may move.
std::span<const CodePointRange> ordered_marks();

}  // namespace onebit::text
