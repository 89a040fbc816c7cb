// Parts of replies as JSON text: a JSON value of a long reply would take many times its memory.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace onebit::serve {

// "[0.25,-1]": each number with the fewest digits that restore the f32. All are finite.
void append_json(std::span<const float> numbers, std::string& text);
// A text in quotes, as json_text() writes it.
void append_json(std::string_view value, std::string& text);
// Ends a list whose members each have a comma behind them.
void end_list(std::string& text);
// Room for so many more bytes at once: a text that grows is copied from time to time, and there are
// two of it meanwhile. Room that stays empty takes no memory.
void reserve_more(size_t bytes, std::string& text);
// The base64 text (RFC 4648) of the numbers as f32, least significant byte first.
std::string base64_of(std::span<const float> numbers);

}  // namespace onebit::serve
