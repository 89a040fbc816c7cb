// Parses the JSON of a safetensors header as a stream: no document is built, so that a hostile
// header cannot request many times its size in memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace onebit::formats {

// One tensor as the header claims it, still unchecked.
struct SafetensorsTensor {
  std::string name, dtype;
  std::vector<uint64_t> shape;
  uint64_t begin = 0, end = 0;  // "data_offsets": bytes from the start of the data
};

// Errors state `place` and the tensor or the offset: not JSON, another structure than the format's,
// a duplicate key, a missing key.
std::vector<SafetensorsTensor> parse_safetensors_json(
    std::string_view text, const std::string& place,
    std::vector<std::pair<std::string, std::string>>& metadata);

}  // namespace onebit::formats
