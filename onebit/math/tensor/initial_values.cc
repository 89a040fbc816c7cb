#include <algorithm>
#include <cmath>
#include <numbers>

#include "onebit/ground/base/philox.h"
#include "onebit/math/tensor/parameter_table.h"

namespace onebit {
namespace {

// FNV-1a of the name: a tensor's values depend on its name, so adding a layer leaves the others'
// values unchanged.
uint64_t hash_of(std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325ull;
  for (const char letter : name) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3ull;
  }
  return hash;
}

double unit_interval(uint32_t bits) {
  return (static_cast<double>(bits) + 0.5) * 0x1.0p-32;
}

// Box-Muller on the counter-based generator: four normal deviates per Philox block.
void fill_normal(float* to, int64_t count, double stddev, PhiloxKey key) {
  for (int64_t begin = 0; begin < count; begin += 4) {
    const uint64_t block = static_cast<uint64_t>(begin / 4);
    const PhiloxCounter bits =
        philox({{static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0}}, key);
    for (int64_t pair = 0; pair < 2; ++pair) {
      const double radius = stddev * std::sqrt(-2.0 * std::log(unit_interval(bits.word[2 * pair])));
      const double angle = 2.0 * std::numbers::pi * unit_interval(bits.word[2 * pair + 1]);
      const int64_t at = begin + 2 * pair;
      if (at < count) to[at] = static_cast<float>(radius * std::cos(angle));
      if (at + 1 < count) to[at + 1] = static_cast<float>(radius * std::sin(angle));
    }
  }
}

}  // namespace

void ParameterTable::initialize(uint64_t seed) {
  Tensor staged = Tensor::zeros(Device{}, DType::kF32, {size_elements_});
  for (const auto& entry : entries_) {
    const ParameterDeclaration& declaration = parameters_[entry.parameter].declaration;
    float* to = staged.data<float>() + entry.offset_elements;
    const int64_t count = entry.shape.elements();
    if (declaration.init == InitialValue::kOnes) std::fill(to, to + count, 1.0f);
    if (declaration.init == InitialValue::kNormal) {
      fill_normal(to, count, declaration.init_stddev, philox_key(seed ^ hash_of(entry.name)));
    }
  }
  copy(values_.view(), staged.view());
}

}  // namespace onebit
