// Parses a tf.train.Example: names with lists of numbers.
// https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/example/example.proto
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace onebit::samples {

// The numbers of a feature; at most one of the lists is not empty.
struct Feature {
  enum class Kind { kEmpty, kBytes, kFloats, kIntegers };

  Kind kind = Kind::kEmpty;
  std::string_view name;
  std::vector<int64_t> integers;
  std::vector<float> floats;
};

// Calls `found` for each feature of the serialized Example in order; numbers are read only for
// names that `wanted` accepts. Errors name `place` and count bytes from `offset`, that of the first
// byte: not an Example, a damaged message, more than `most_numbers` numbers in a list. The caller
// has to detect a name that occurs twice.
struct ExampleLimits {
  size_t most_numbers = size_t{1} << 20;
};
void for_each_feature(std::string_view example, const std::string& place, uint64_t offset,
                      const ExampleLimits& limits,
                      const std::function<bool(std::string_view)>& wanted,
                      const std::function<void(Feature&)>& found);

}  // namespace onebit::samples
