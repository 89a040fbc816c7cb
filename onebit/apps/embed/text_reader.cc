#include "onebit/apps/embed/text_reader.h"

#include "onebit/apps/embed/text_columns.h"
#include "onebit/data/corpus/byte_stream.h"
#include "onebit/ground/base/error.h"
#include "onebit/training/finetune/columns.h"

namespace onebit::embed {
namespace {

using finetune::Field;
using finetune::FileFormat;

bool is_of_lines(const Path& path) {
  return corpus::unpacked_name(path).extension() == ".txt";
}

// The format of a file of records; empty: a file of lines.
std::optional<FileFormat> record_format(const Path& path, const TextLayout& layout) {
  if (!layout.format) {
    if (is_of_lines(path)) return std::nullopt;
    return finetune::format_of(path);
  }
  switch (*layout.format) {
    case TextFormat::kLines:
      return std::nullopt;
    case TextFormat::kTsv:
      return FileFormat::kTsv;
    case TextFormat::kCsv:
      return FileFormat::kCsv;
    case TextFormat::kJsonLines:
      return FileFormat::kJsonLines;
  }
  return std::nullopt;
}

}  // namespace

TextReader::TextReader(const Path& path, const TextLayout& layout) {
  const std::optional<FileFormat> format = record_format(path, layout);
  if (!format) {
    lines_ = std::make_unique<corpus::FileLines>(path);
    return;
  }
  records_ = std::make_unique<finetune::RecordReader>(
      path,
      finetune::RecordOptions{.format = *format,
                              .has_header = finetune::has_header(layout.header, {layout.column})});
  column_ = choose_text(*records_, layout.column);
  records_->select({column_});
}

bool TextReader::next(std::string& text) {
  if (lines_) {
    if (!lines_->next(text)) return false;
    if (text.ends_with('\r')) text.pop_back();
    return true;
  }
  if (!records_->next(fields_)) return false;
  Field& field = fields_.front();
  require(field.kind == Field::Kind::kText, "{}: `{}` is {}; a text must be a string",
          records_->place(), column_,
          field.kind == Field::Kind::kList ? "a list" : "the number " + field.text);
  text.swap(field.text);
  return true;
}

const std::string& TextReader::name() const {
  return lines_ ? lines_->name() : records_->name();
}

}  // namespace onebit::embed
