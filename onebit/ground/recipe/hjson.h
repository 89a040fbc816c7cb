// Hjson, in which DeepSpeed's configs may be written: JSON with comments that begin with #, keys
// and texts without quotes, and commas that may be missing or needless.
#pragma once

#include <string>

namespace onebit {

// Blanks replace comments with # and commas before a closing bracket, which JSON does not have.
// Places in the text stay as they are.
std::string without_hjson(std::string text);

// The first part of a text without these that Hjson has and JSON has not, in words; empty if there
// is none. For a text that is not JSON.
std::string hjson_in(const std::string& text);

}  // namespace onebit
