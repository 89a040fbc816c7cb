// The type of a JSON value, for headers that only pass it on: the JSON library takes a second to
// compile.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace onebit {

// Keeps the order of keys, so that output has the key order of the input.
using Json = nlohmann::ordered_json;

class JsonReader;

}  // namespace onebit
