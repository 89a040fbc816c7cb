// Words of messages: a count with its noun, a list of names, the word that was meant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace onebit {

// "1 rank", "3 ranks".
std::string counted(int64_t count, std::string_view noun);

// "a, b, c", with ", ..." in place of the names after the first `most`.
std::string listed(std::span<const std::string> names, size_t most = 8);

// The known word nearest to `word` by edit distance, or empty when none is close.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

}  // namespace onebit
