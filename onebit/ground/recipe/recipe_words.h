// Words in the text of a recipe, which may be Hjson, for messages about what is no JSON.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace onebit {

inline constexpr size_t kShownOfWord = 60;  // bytes

// The offset of the line end, or the end of a comment of the kind that parse_json() skips.
size_t comment_end(std::string_view text, size_t begin);
bool is_of_word(char c);
// Whether the word is meant as a number, as its first digit says.
bool is_number_word(std::string_view word);

// Names, in a sentence, the first number that JSON does not have, with its key and what is meant:
// 0x10, 010, +1, .5, 1_000, 1e999. Empty: there is none.
std::string foreign_number_in(const std::string& text);

}  // namespace onebit
