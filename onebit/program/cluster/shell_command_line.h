// Command lines as a POSIX shell reads them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "onebit/ground/base/printable.h"

namespace onebit::cluster {

using Words = std::vector<std::string>;

// The words, quoted where necessary (base/printable.h) and separated by spaces.
std::string shell_line(const Words& words);
// Splits at blanks. 'quoted', "quoted" and \escaped characters are read as in a shell; nothing is
// expanded. Error: an unclosed quote; `place` names the text in the message.
Words split_words(std::string_view text, const std::string& place);

}  // namespace onebit::cluster
