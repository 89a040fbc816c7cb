#include "onebit/ground/base/dtype.h"

#include <fmt/format.h>

#include <cmath>

#include "onebit/ground/base/error.h"

namespace onebit {

int64_t size_bytes_of(DType dtype) {
  switch (dtype) {
    case DType::kU8:
      return 1;
    case DType::kBF16:
    case DType::kF16:
    case DType::kU16:
      return 2;
    case DType::kF32:
    case DType::kI32:
    case DType::kU32:
      return 4;
    case DType::kF64:
    case DType::kI64:
    case DType::kU64:
      return 8;
  }
  return 0;
}

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kBF16:
      return "bf16";
    case DType::kF16:
      return "f16";
    case DType::kF64:
      return "f64";
    case DType::kI32:
      return "i32";
    case DType::kI64:
      return "i64";
    case DType::kU8:
      return "u8";
    case DType::kU16:
      return "u16";
    case DType::kU32:
      return "u32";
    case DType::kU64:
      return "u64";
  }
  return "unknown";
}

f16::f16(float value) {
  const uint32_t word = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((word >> 16) & 0x8000u);
  const uint32_t magnitude = word & 0x7FFFFFFFu;
  if (magnitude >= 0x7F800000u) {  // infinity, NaN
    bits = static_cast<uint16_t>(sign | 0x7C00u | (magnitude > 0x7F800000u ? 0x0200u : 0u));
  } else if (magnitude >= 0x477FF000u) {  // rounds beyond 65504
    bits = static_cast<uint16_t>(sign | 0x7C00u);
  } else if (magnitude < 0x38800000u) {  // subnormal: units of 2^-24
    const float scaled = std::bit_cast<float>(magnitude) * 0x1.0p24f;
    bits = static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyintf(scaled)));
  } else {
    const uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u) - 0x38000000u;
    bits = static_cast<uint16_t>(sign | (rounded >> 13));
  }
}

f16::operator float() const {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t exponent = (bits >> 10) & 0x1Fu, fraction = bits & 0x3FFu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1.0p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  const uint32_t wide = exponent == 31 ? 0x7F800000u : (exponent + 112u) << 23;
  return std::bit_cast<float>(sign | wide | (fraction << 13));
}

Shape::Shape(std::initializer_list<int64_t> extents) {
  for (const int64_t extent : extents) append(extent);
}

void Shape::append(int64_t extent) {
  ONEBIT_INVARIANT(rank_ < kMaxRank && extent >= 0);
  extents_[rank_++] = extent;
}

int64_t Shape::elements() const {
  int64_t product = 1;
  for (int axis = 0; axis < rank_; ++axis) product *= (*this)[axis];
  return product;
}

bool Shape::operator==(const Shape& other) const {
  return rank_ == other.rank_ && extents_ == other.extents_;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int axis = 0; axis < shape.rank(); ++axis) {
    text += fmt::format("{}{}", axis == 0 ? "" : ", ", shape[axis]);
  }
  return text + "]";
}

}  // namespace onebit
