#include "onebit/ground/metrics/dot_canvas.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace onebit::metrics {
namespace {

constexpr std::string_view kMarks = "*o+x#@%&";
// Cyan, magenta, yellow, green, red, blue: readable on dark and light.
constexpr int kColors[] = {36, 35, 33, 32, 31, 34};
constexpr uint32_t kBraille = 0x2800;
// The bit of the dot at (x, y from the top).
constexpr uint8_t kDotBits[2][4] = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}};

std::string utf8_of(uint32_t code_point) {  // U+0800..U+FFFF
  return {static_cast<char>(0xE0u | (code_point >> 12)),
          static_cast<char>(0x80u | ((code_point >> 6) & 0x3Fu)),
          static_cast<char>(0x80u | (code_point & 0x3Fu))};
}

std::string colored(const std::string& text, int curve, bool color) {
  if (!color) return text;
  return fmt::format("\x1b[{}m{}\x1b[0m", kColors[static_cast<size_t>(curve) % std::size(kColors)],
                     text);
}

}  // namespace

DotCanvas::DotCanvas(size_t columns, size_t rows, bool braille)
    : columns_(columns),
      rows_(rows),
      braille_(braille),
      cell_x_(braille ? 2 : 1),
      cell_y_(braille ? 4 : 1),
      bits_(columns * rows, 0),
      owner_(columns * rows, -1) {}

void DotCanvas::set(size_t x, size_t y, int curve) {
  const size_t from_top = dots_y() - 1 - y;
  const size_t cell = from_top / cell_y_ * columns_ + x / cell_x_;
  bits_[cell] = static_cast<uint8_t>(bits_[cell] | kDotBits[x % cell_x_][from_top % cell_y_]);
  owner_[cell] = curve;
}

void DotCanvas::set_column(size_t x, size_t from_y, size_t to_y, int curve) {
  for (size_t y = std::min(from_y, to_y); y <= std::max(from_y, to_y); ++y) set(x, y, curve);
}

std::string DotCanvas::mark(int curve, bool color) const {
  const std::string text = braille_
                               ? utf8_of(kBraille + 0x12)
                               : std::string(1, kMarks[static_cast<size_t>(curve) % kMarks.size()]);
  return colored(text, curve, color);
}

std::string DotCanvas::row_text(size_t row, bool color) const {
  std::string text;
  for (size_t column = 0; column < columns_; ++column) {
    const size_t cell = row * columns_ + column;
    if (owner_[cell] < 0) {
      text += ' ';
    } else if (braille_) {
      text += colored(utf8_of(kBraille + bits_[cell]), owner_[cell], color);
    } else {
      text += mark(owner_[cell], color);
    }
  }
  return text;
}

}  // namespace onebit::metrics
