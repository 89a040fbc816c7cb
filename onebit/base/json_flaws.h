// Flaws that JSON parsers accept and onebit refuses. Comments are allowed.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace onebit {

struct DuplicateKey {
  std::string key;
  size_t offset;  // of the second one's opening quote, in bytes
};

// A key given twice in one object. The text must already have been parsed.
std::optional<DuplicateKey> find_duplicate_key(std::string_view text);

// The offset of a bracket that opens more than `most` levels. Works on any text, since it is called
// before parsing.
std::optional<size_t> find_deeper_nesting(std::string_view text, size_t most);

}  // namespace onebit
