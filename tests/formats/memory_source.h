// Tensors in memory as a TensorSource, filled with a different number in every element.
#pragma once

#include <bit>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "onebit/data/formats/tensor_source.h"

namespace onebit::formats {

class MemorySource : public TensorSource {
 public:
  MemorySource(const std::string& place, std::vector<TensorEntry> entries) {
    float next = 1.0f;
    for (const TensorEntry& entry : entries) {
      auto& values = values_.emplace_back();
      for (int64_t i = 0; i < entry.shape.elements(); ++i) values.push_back(next++);
    }
    set_entries(place, std::move(entries));
  }
  std::vector<float>& values(size_t index) { return values_[index]; }

 private:
  std::span<const std::byte> readable_bytes(size_t index, std::vector<std::byte>&) const override {
    return std::as_bytes(std::span(values_[index]));
  }

  std::vector<std::vector<float>> values_;
};

inline std::vector<float> values_of(const TensorSource& source, const std::string& name) {
  const size_t index = source.index_of(name);
  std::vector<float> values(static_cast<size_t>(source.entries()[index].shape.elements()));
  source.read_f32(index, values);
  return values;
}

}  // namespace onebit::formats
