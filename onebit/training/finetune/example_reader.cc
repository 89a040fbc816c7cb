#include "onebit/training/finetune/example_reader.h"

#include "onebit/data/corpus/crc32.h"
#include "onebit/ground/base/error.h"

namespace onebit::finetune {
namespace {

RecordOptions record_options(const Path& path, const FileLayout& layout) {
  return {.format = layout.format ? *layout.format : format_of(path),
          .has_header = layout.columns.has_header(),
          .skip_short = layout.skip_short,
          .fill_short = layout.fill_short,
          .left_out = layout.left_out};
}

}  // namespace

ExampleReader::ExampleReader(const Path& path, const FileLayout& layout, bool with_labels)
    : records_(path, record_options(path, layout)),
      columns_(choose_columns(records_, layout.columns, with_labels, layout.column_fix)) {
  records_.select(columns_.list());
}

void ExampleReader::take_text(Field& field, const std::string& column, std::string& text) const {
  require(field.kind == Field::Kind::kText, "{}: `{}` is {}; a text must be a string",
          records_.place(), column,
          field.kind == Field::Kind::kList ? "a list" : "the number " + field.text);
  text.swap(field.text);
}

bool ExampleReader::next(Example& example) {
  while (records_.next(fields_)) {
    try {
      take(example);
      return true;
    } catch (const Error& error) {
      records_.leave_out(error);
    }
  }
  return false;
}

void ExampleReader::take(Example& example) {
  take_text(fields_[0], columns_.text, example.text);
  if (has_pairs()) take_text(fields_[1], columns_.text_pair, example.text_pair);
  if (!columns_.label.empty()) example.label = std::move(fields_.back());
  example.line = records_.line();
}

Examples read_examples(const Path& path, const FileLayout& layout, const ExampleCheck& check) {
  ExampleReader reader(path, layout, true);
  Examples examples = {.source = reader.name(), .all = {}, .has_pairs = reader.has_pairs()};
  for (Example example; reader.next(example);) {
    try {
      if (check) check(example, reader.place());
      examples.all.push_back(std::move(example));
    } catch (const Error& error) {
      reader.leave_out(error);
    }
  }
  examples.skipped = reader.skipped();
  examples.left_out = reader.left_out().summary();
  if (layout.columns.text.empty()) examples.unread = reader.unread(layout.column_fix);
  require(
      !examples.all.empty(), "{}: has no example: {}", examples.source,
      !examples.left_out.empty() ? examples.left_out
      : examples.skipped > 0
          ? fmt::format("{} lines were left out, as they have too few columns", examples.skipped)
          : "there is nothing after the header (for a file without one, set data.header to no)");
  return examples;
}

uint32_t checksum(const Examples& examples) {
  uint32_t crc = 0;
  // The size precedes the text, so that moving text from one field to the next changes the
  // checksum.
  const auto add = [&](const std::string& text) {
    const uint64_t size = text.size();
    crc = corpus::crc32_of(&size, sizeof(size), crc);
    crc = corpus::crc32_of(text.data(), text.size(), crc);
  };
  for (const Example& example : examples.all) {
    add(example.text);
    add(example.text_pair);
    add(example.label.text);
    for (const std::string& label : example.label.list) add(label);
  }
  return crc;
}

}  // namespace onebit::finetune
