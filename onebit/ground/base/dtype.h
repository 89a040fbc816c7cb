// Element types, the two 16-bit floating-point formats, shapes.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace onebit {

enum class DType : uint8_t { kF32, kBF16, kF16, kF64, kI32, kI64, kU8, kU16, kU32, kU64 };

int64_t size_bytes_of(DType dtype);
std::string_view name_of(DType dtype);  // "f32", "bf16", ...

// bfloat16: the upper half of an f32. Rounds to nearest even. NaN stays NaN.
struct bf16 {
  uint16_t bits = 0;

  bf16() = default;
  explicit bf16(float value) {
    const uint32_t word = std::bit_cast<uint32_t>(value);
    if ((word & 0x7FFFFFFFu) > 0x7F800000u) {
      bits = static_cast<uint16_t>((word >> 16) | 0x0040u);
    } else {
      bits = static_cast<uint16_t>((word + 0x7FFFu + ((word >> 16) & 1u)) >> 16);
    }
  }
  explicit operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
  bool operator==(const bf16&) const = default;
};

// IEEE half precision. Conversions in dtype.cc round to nearest even.
struct f16 {
  uint16_t bits = 0;

  f16() = default;
  explicit f16(float value);
  explicit operator float() const;
  bool operator==(const f16&) const = default;
};

template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kF32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::kF64;
};
template <>
struct DTypeOf<bf16> {
  static constexpr DType value = DType::kBF16;
};
template <>
struct DTypeOf<f16> {
  static constexpr DType value = DType::kF16;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::kI32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::kI64;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::kU8;
};
template <>
struct DTypeOf<uint16_t> {
  static constexpr DType value = DType::kU16;
};
template <>
struct DTypeOf<uint32_t> {
  static constexpr DType value = DType::kU32;
};
template <>
struct DTypeOf<uint64_t> {
  static constexpr DType value = DType::kU64;
};

// Up to four extents, row-major, outermost first.
class Shape {
 public:
  static constexpr int kMaxRank = 4;

  Shape() = default;
  Shape(std::initializer_list<int64_t> extents);

  int rank() const { return rank_; }
  int64_t operator[](int axis) const { return extents_[static_cast<size_t>(axis)]; }
  void append(int64_t extent);
  int64_t elements() const;
  bool operator==(const Shape& other) const;

 private:
  std::array<int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

std::string to_string(const Shape& shape);  // "[4096, 768]"

}  // namespace onebit
