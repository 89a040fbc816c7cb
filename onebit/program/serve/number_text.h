// Vectors in replies.
#pragma once

#include <span>
#include <string>

namespace onebit::serve {

// "[0.25,-1]": each number with the fewest digits that restore the f32. All are finite.
void append_json(std::span<const float> numbers, std::string& text);
// The base64 text (RFC 4648) of the numbers as f32, least significant byte first.
std::string base64_of(std::span<const float> numbers);

}  // namespace onebit::serve
