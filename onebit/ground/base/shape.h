#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace onebit {

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
