// Finds the paragraph's text for predicted pieces as the published SQuAD programs do.
#pragma once

#include <string>
#include <string_view>

#include "onebit/data/text/casing.h"

namespace onebit::squad {

// The part of `original` (words of the paragraph) that corresponds to `predicted` (rejoined pieces,
// normalised), aligned by counting the non-space characters in `original` and in its tokenized
// form. All of `original` if that fails.
std::string project_answer(std::string_view predicted, std::string_view original,
                           text::Casing casing);

}  // namespace onebit::squad
