// Command lines as a POSIX shell reads them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace onebit::cluster {

using Words = std::vector<std::string>;

// The word in quotes, if a shell would read it differently without.
std::string shell_quoted(std::string_view word);
// The words, quoted, with a space between two.
std::string shell_line(const Words& words);
// Splits at blanks; 'quoted', "quoted" and \escaped characters as in a shell, nothing is expanded.
// Error: a quote that is not closed; `place` names the text.
Words split_words(std::string_view text, const std::string& place);

}  // namespace onebit::cluster
