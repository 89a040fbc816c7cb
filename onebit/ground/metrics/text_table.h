// Tables of aligned columns, without boxes, for start-up and reports.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace onebit::metrics {

// The number of columns of a text in a terminal: its code points without combining ones.
size_t display_width(std::string_view utf8);

// Control characters of cells, which may be out of files, are replaced (base/printable.h).
class TextTable {
 public:
  // Without a header, the first row added determines the number of columns.
  TextTable() = default;
  explicit TextTable(std::vector<std::string> header);

  // Columns that are right-aligned (numbers). The others are left-aligned.
  TextTable& align_right(std::vector<size_t> columns);
  void add_row(std::vector<std::string> cells);
  // Adds a line between rows that is not aligned.
  void add_title(std::string title);

  // Lines ending in '\n', each preceded by `indent` spaces, without trailing spaces.
  std::string text(size_t indent = 0) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    bool is_title = false;
  };

  void check_columns(size_t count);

  std::vector<Row> rows_;
  std::vector<bool> right_;
  size_t columns_ = 0;
  bool has_header_ = false;
};

}  // namespace onebit::metrics
