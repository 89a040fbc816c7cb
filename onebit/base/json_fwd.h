// The type of a JSON value, for headers that only pass it on: the library behind it takes a second
// to compile.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace onebit {

// Keeps the order of keys, so that what we write reads like what was given.
using Json = nlohmann::ordered_json;

class JsonReader;

}  // namespace onebit
