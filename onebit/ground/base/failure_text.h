// The message for the user of any exception.
#pragma once

#include <exception>
#include <string>

namespace onebit {

// what() of an Error. The texts of the standard library and of the JSON library ("std::bad_alloc",
// "vector::_M_default_append", "[json.exception.type_error.302] ...") are translated: they state
// neither what failed nor what helps.
std::string failure_text(const std::exception& failure);

}  // namespace onebit
