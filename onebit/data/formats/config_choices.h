// The keys of config.json that say what an encoder computes: activations, biases, rotary positions,
// windows. Its sizes and probabilities are in encoder_config_file.h.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "onebit/data/formats/encoder_config_file.h"
#include "onebit/data/formats/families.h"
#include "onebit/ground/base/json.h"

namespace onebit::formats {

// The number under `key`, or `fallback` if the key is empty or absent. Error: it is not positive.
double read_positive(JsonReader& reader, std::string_view key, double fallback);

// Fills config.choices, whose defaults are the family's. The sizes are read already. Error:
// a choice that onebit's encoder does not compute.
void read_choices(JsonReader& reader, const Family& family, EncoderConfigFile& config);

void write_choices(nlohmann::json& json, const Family& family, const EncoderConfigFile& config);

// Gives a config that nomic-bert's own program wrote (n_embd, n_layer...) the keys of transformers.
// Error: a choice that the class of transformers does not compute.
Json with_keys_of_transformers(const Json& config, const std::string& place);

}  // namespace onebit::formats
