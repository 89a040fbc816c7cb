// JSON in data files, which other programs write less strictly than the standard: Python's json
// module writes NaN, Infinity and half a surrogate pair, and reads them. Recipes and model folders
// are read with parse_json() (base/json.h).
#pragma once

#include <string>
#include <string_view>

#include "onebit/ground/base/json_fwd.h"

namespace onebit::corpus {

// Returns `text` with null in place of NaN, Infinity, -Infinity and numbers beyond a double, and
// with \ufffd in place of an escape that is half of a surrogate pair. The text may be any.
std::string repaired_json(std::string_view text);

// As parse_json(), after the repairs above where they are necessary. Errors have the places of
// `text`.
Json parse_data_json(std::string_view text, const std::string& source);

}  // namespace onebit::corpus
