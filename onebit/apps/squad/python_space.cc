#include "onebit/apps/squad/python_space.h"

#include "onebit/data/text/utf8.h"

namespace onebit::squad {

std::string with_single_spaces(std::string_view text) {
  std::string result;
  bool pending = false;
  while (!text.empty()) {
    const text::DecodedCharacter c = text::decode_utf8(text);
    if (is_python_space(c.code_point)) {
      pending = !result.empty();
    } else {
      if (pending) result += ' ';
      pending = false;
      result += text.substr(0, c.size_bytes);
    }
    text.remove_prefix(c.size_bytes);
  }
  return result;
}

}  // namespace onebit::squad
