#include "onebit/training/finetune/csv_fields.h"

#include "onebit/ground/base/error.h"

namespace onebit::finetune {
namespace {

class CsvRecord {
 public:
  CsvRecord(corpus::FileLines& lines, std::string& line, std::vector<std::string>& fields)
      : lines_(lines), line_(line), fields_(fields), place_(lines.place()) {}

  void split() {
    fields_.clear();
    size_t at = 0;
    while (true) {
      std::string& field = fields_.emplace_back();
      at = at < line_.size() && line_[at] == '"' ? quoted(at + 1, field) : plain(at, field);
      if (at >= end()) return;
      ++at;  // the comma
    }
  }

 private:
  // The end of the line, without the "\r" of a "\r\n".
  size_t end() const { return line_.ends_with('\r') ? line_.size() - 1 : line_.size(); }

  size_t plain(size_t begin, std::string& field) const {
    const size_t comma = std::min(line_.find(',', begin), end());
    field.assign(line_, begin, comma - begin);
    return comma;
  }

  // Returns the position after the closing quote; line_ may then be a later line.
  size_t quoted(size_t at, std::string& field) {
    while (true) {
      const size_t quote = line_.find('"', at);
      if (quote == std::string::npos) {
        field.append(line_, at);
        field += '\n';
        require(lines_.next(line_), "{}: the quote that opens field {} is never closed", place_,
                fields_.size());
        at = 0;
      } else if (quote + 1 < line_.size() && line_[quote + 1] == '"') {
        field.append(line_, at, quote + 1 - at);
        at = quote + 2;
      } else {
        field.append(line_, at, quote - at);
        require(
            quote + 1 >= end() || line_[quote + 1] == ',',
            "{}: field {} continues after its closing quote; write a quote inside a quoted field "
            "twice (\"\")",
            place_, fields_.size());
        return quote + 1;
      }
    }
  }

  corpus::FileLines& lines_;
  std::string& line_;
  std::vector<std::string>& fields_;
  std::string place_;
};

}  // namespace

void csv_fields(corpus::FileLines& lines, std::string& line, std::vector<std::string>& fields) {
  CsvRecord(lines, line, fields).split();
}

}  // namespace onebit::finetune
