#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace onebit::metrics {

// A plane of characters to draw lines on. Each has `dots_x` by `dots_y` dots: 2 by 4 for Braille
// patterns (U+2800...), or 1 by 1 for one mark per curve. y grows upwards.
class DotCanvas {
 public:
  DotCanvas(size_t columns, size_t rows, bool braille);

  size_t dots_x() const { return columns_ * cell_x_; }
  size_t dots_y() const { return rows_ * cell_y_; }
  // Sets a dot for `curve`. The later curve owns the character.
  void set(size_t x, size_t y, int curve);
  // Sets the dots of column x from y to the neighbour's height, as a line to it would.
  void set_column(size_t x, size_t from_y, size_t to_y, int curve);

  // The characters of a row (0 is the top), coloured if asked.
  std::string row_text(size_t row, bool color) const;

  // The mark of `curve` in a legend.
  std::string mark(int curve, bool color) const;

 private:
  size_t columns_, rows_;
  bool braille_;
  size_t cell_x_, cell_y_;
  std::vector<uint8_t> bits_;
  std::vector<int> owner_;
};

}  // namespace onebit::metrics
