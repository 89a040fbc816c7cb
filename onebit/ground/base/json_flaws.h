// Flaws that JSON parsers accept and onebit refuses. Comments are allowed.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace onebit {

// The offset after the string whose opening quote is at `begin`, or the end of the text.
size_t end_of_string(std::string_view text, size_t begin);

struct DuplicateKey {
  std::string key;
  size_t offset;  // of the duplicate's opening quote, in bytes
};

// Finds a key that occurs twice in one object. The text must already have been parsed.
std::optional<DuplicateKey> find_duplicate_key(std::string_view text);

// Returns the offset of a bracket that opens more than `most` levels. Accepts any text, since it is
// called before parsing.
std::optional<size_t> find_deeper_nesting(std::string_view text, size_t most);

}  // namespace onebit
