// Suggests the word that was meant, for errors about an unknown word.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace onebit {

// The known word nearest to `word` by edit distance, or empty when none is close.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

}  // namespace onebit
