#include "onebit/ground/metrics/text_table.h"

#include <algorithm>
#include <utility>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/printable.h"

namespace onebit::metrics {
namespace {

constexpr std::string_view kGap = "  ";

}  // namespace

size_t display_width(std::string_view utf8) {
  size_t width = 0;
  for (size_t i = 0; i < utf8.size(); ++i) {
    const auto byte = static_cast<unsigned char>(utf8[i]);
    const bool continues = (byte & 0xC0u) == 0x80u;
    // U+0300..U+036F: 0xCC 0x80 .. 0xCD 0xAF.
    const bool combines = byte == 0xCC || (byte == 0xCD && i + 1 < utf8.size() &&
                                           static_cast<unsigned char>(utf8[i + 1]) < 0xB0);
    if (!continues && !combines) ++width;
  }
  return width;
}

TextTable::TextTable(std::vector<std::string> header) : has_header_(true) {
  add_row(std::move(header));
}

void TextTable::check_columns(size_t count) {
  if (columns_ == 0) columns_ = count;
  ONEBIT_INVARIANT(count == columns_ && count > 0);
  right_.resize(columns_, false);
}

TextTable& TextTable::align_right(std::vector<size_t> columns) {
  for (const size_t column : columns) {
    if (column >= right_.size()) right_.resize(column + 1, false);
    right_[column] = true;
  }
  return *this;
}

void TextTable::add_row(std::vector<std::string> cells) {
  check_columns(cells.size());
  for (std::string& cell : cells) cell = printable_line(cell);
  rows_.push_back({std::move(cells), false});
}

void TextTable::add_title(std::string title) {
  rows_.push_back({{printable_line(title)}, true});
}

std::string TextTable::text(size_t indent) const {
  std::vector<size_t> widths(columns_, 0);
  for (const Row& row : rows_) {
    if (row.is_title) continue;
    for (size_t i = 0; i < columns_; ++i) {
      widths[i] = std::max(widths[i], display_width(row.cells[i]));
    }
  }
  std::string text;
  const auto end_line = [&](std::string line) {
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  for (size_t r = 0; r < rows_.size(); ++r) {
    std::string line(indent, ' ');
    for (size_t i = 0; i < rows_[r].cells.size(); ++i) {
      const std::string& cell = rows_[r].cells[i];
      const size_t missing =
          rows_[r].is_title ? 0 : widths[i] - std::min(widths[i], display_width(cell));
      if (i > 0) line += kGap;
      line += right_[i] ? std::string(missing, ' ') + cell : cell + std::string(missing, ' ');
    }
    end_line(std::move(line));
    if (r > 0 || !has_header_) continue;
    std::string rule(indent, ' ');
    for (size_t i = 0; i < columns_; ++i) {
      if (i > 0) rule += kGap;
      rule.append(widths[i], '-');
    }
    end_line(std::move(rule));
  }
  return text;
}

}  // namespace onebit::metrics
