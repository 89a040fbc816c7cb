// Marks at the beginning of text files.
#pragma once

#include <string>
#include <string_view>

#include "onebit/ground/base/error.h"

namespace onebit::corpus {

inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // of UTF-8

// `text`: the beginning of file `name`. Error: it has the mark of UTF-16.
inline void refuse_utf16(std::string_view text, const std::string& name) {
  require(!text.starts_with("\xFF\xFE") && !text.starts_with("\xFE\xFF"),
          "{}: is UTF-16: convert it with iconv -f UTF-16 -t UTF-8", name);
}

}  // namespace onebit::corpus
