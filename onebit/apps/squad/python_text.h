// White space and JSON as Python has them: the published SQuAD programs' files byte for byte.
#pragma once

#include <string>
#include <string_view>

#include "onebit/ground/base/json_fwd.h"

namespace onebit::squad {

// White space as Python's str.split() defines it, at which the published SQuAD programs split.
inline bool is_python_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13) || (c >= 28 && c <= 31);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

// Runs of white space become single spaces, none at the ends.
std::string with_single_spaces(std::string_view text);

// Characters other than ASCII are escaped. Numbers are the shortest that read back the same.
// `indent` 0: on one line. `depth` is the nesting level of the value. Error: a number that is not
// finite, which JSON cannot represent.
std::string python_json(const Json& value, int indent, int depth = 0);

}  // namespace onebit::squad
