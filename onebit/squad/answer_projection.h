// The published SQuAD programs' way from predicted pieces back to the text of the paragraph.
#pragma once

#include <string>
#include <string_view>

#include "onebit/text/casing.h"

namespace onebit::squad {

// The part of `original` (words of the paragraph) that `predicted` (pieces put together again,
// normalised) stands for: aligned by counting the characters that are no spaces in `original` and
// in its tokenized form. All of `original` where that fails.
std::string project_answer(std::string_view predicted, std::string_view original,
                           text::Casing casing);

}  // namespace onebit::squad
