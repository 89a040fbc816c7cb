#include "onebit/ground/metrics/curve_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/ground/metrics/human.h"
#include "onebit/ground/metrics/text_table.h"

namespace onebit::metrics {
namespace {

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

struct Range {
  double least = std::numeric_limits<double>::max();
  double most = std::numeric_limits<double>::lowest();

  void include(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
  double span() const { return most - least; }
  // The cell of a value among `count` equal cells.
  size_t cell(double value, size_t count) const {
    const double at = (value - least) / span() * static_cast<double>(count);
    return static_cast<size_t>(std::clamp(at, 0.0, static_cast<double>(count - 1)));
  }
};

bool is_finite(const std::pair<double, double>& point) {
  return std::isfinite(point.first) && std::isfinite(point.second);
}

// 1, 2 or 5 times a power of ten, so that about `parts` steps cover the range.
double round_step(double span, double parts) {
  const double rough = span / parts;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (power * factor >= rough) return power * factor;
  }
  return power * 10;
}

// The mean of the curve's values in each dot column. Columns without points are empty.
std::vector<std::optional<double>> column_means(const Curve& curve, const Range& x_range,
                                                size_t columns) {
  std::vector<double> sums(columns, 0), counts(columns, 0);
  for (const auto& point : curve.points) {
    if (!is_finite(point)) continue;
    const size_t column = x_range.cell(point.first, columns);
    sums[column] += point.second;
    counts[column] += 1;
  }
  std::vector<std::optional<double>> means(columns);
  for (size_t i = 0; i < columns; ++i) {
    if (counts[i] > 0) means[i] = sums[i] / counts[i];
  }
  return means;
}

void draw_curve(DotCanvas& canvas, const Curve& curve, int number, const Range& x_range,
                const Range& y_range) {
  const auto means = column_means(curve, x_range, canvas.dots_x());
  std::optional<size_t> last;
  for (size_t x = 0; x < means.size(); ++x) {
    if (!means[x]) continue;
    const size_t y = y_range.cell(*means[x], canvas.dots_y());
    if (!last) canvas.set(x, y, number);
    // A straight line from the last column with a value, each step joined to the previous one.
    size_t before = last ? y_range.cell(*means[*last], canvas.dots_y()) : y;
    for (size_t between = last.value_or(x) + 1; last && between <= x; ++between) {
      const double share = static_cast<double>(between - *last) / static_cast<double>(x - *last);
      const double value = *means[*last] + share * (*means[x] - *means[*last]);
      const size_t height = y_range.cell(value, canvas.dots_y());
      canvas.set_column(between, before, height, number);
      before = height;
    }
    last = x;
  }
}

// A label for each plane row that a round value falls into, else empty.
std::vector<std::string> y_labels(const Range& y_range, size_t height) {
  std::vector<std::string> labels(height);
  const double step = round_step(y_range.span(), std::max(2.0, static_cast<double>(height) / 4));
  const int decimals = static_cast<int>(std::max(0.0, -std::floor(std::log10(step) + 1e-9)));
  const double first = std::ceil(y_range.least / step - 1e-9);
  const double last = std::floor(y_range.most / step + 1e-9);
  for (double i = first; i <= last; ++i) {
    const double value = i == 0 ? 0.0 : i * step;
    labels[height - 1 - y_range.cell(value, height)] = fmt::format("{:.{}f}", value, decimals);
  }
  return labels;
}

// The least and the largest x below the axis.
std::string x_labels(const Range& x_range, const std::string& label, size_t width) {
  const std::string left = human_count(x_range.least), right = human_count(x_range.most);
  const size_t used = display_width(left) + display_width(right) + display_width(label);
  if (used + 2 > width) return left + " ... " + right;
  const size_t space = width - used;
  return left + std::string(space / 2, ' ') + label + std::string(space - space / 2, ' ') + right;
}

}  // namespace

std::string draw_curves(std::span<const Curve> curves, const CurvePlot& plot) {
  Range x_range, y_range;
  for (const Curve& curve : curves) {
    for (const auto& point : curve.points) {
      if (!is_finite(point)) continue;
      x_range.include(point.first);
      y_range.include(point.second);
    }
  }
  if (x_range.span() < 0) return "(no finite points to draw)\n";
  for (Range* range : {&x_range, &y_range}) {
    if (range->span() > 0) continue;
    const double margin = std::max(std::abs(range->least) * 0.5, 0.5);
    *range = {range->least - margin, range->most + margin};
  }
  const size_t height = std::max<size_t>(plot.height, 2);
  const auto labels = y_labels(y_range, height);
  size_t label_width = 0;
  for (const auto& label : labels) label_width = std::max(label_width, label.size());
  const size_t frame = label_width + 2;
  const size_t columns = plot.width > frame + 8 ? plot.width - frame : 8;
  DotCanvas canvas(columns, height, curves.size() == 1 || plot.color);
  for (size_t i = 0; i < curves.size(); ++i) {
    draw_curve(canvas, curves[i], static_cast<int>(i), x_range, y_range);
  }
  std::string text;
  for (size_t row = 0; row < height; ++row) {
    std::string line =
        fmt::format("{:>{}} {}", labels[row], label_width, labels[row].empty() ? "│" : "┤") +
        canvas.row_text(row, plot.color);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  std::string axis;
  for (size_t i = 0; i < columns; ++i) axis += "─";
  text += std::string(label_width + 1, ' ') + "└" + axis + "\n";
  text += std::string(frame, ' ') + x_labels(x_range, plot.x_label, columns) + "\n";
  if (curves.size() < 2) return text;
  std::string legend(frame, ' ');
  for (size_t i = 0; i < curves.size(); ++i) {
    legend += fmt::format("{}{} {}", i == 0 ? "" : "   ",
                          canvas.mark(static_cast<int>(i), plot.color), curves[i].name);
  }
  return text + legend + "\n";
}

}  // namespace onebit::metrics
