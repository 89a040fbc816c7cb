#include "onebit/embed/example_reader.h"

#include <charconv>
#include <cmath>

#include "onebit/base/error.h"
#include "onebit/corpus/crc32.h"

namespace onebit::embed {
namespace {

using records::Field;

std::string take_text(const records::RecordReader& reader, Field& field,
                      const std::string& column) {
  require(field.kind == Field::Kind::kText, "{}: `{}` is {}; a text must be a string",
          reader.place(), column,
          field.kind == Field::Kind::kList ? "a list" : "the number " + field.text);
  return std::move(field.text);
}

float read_score(const records::RecordReader& reader, const Field& field, const std::string& column,
                 const FileLayout& layout) {
  double score = 0;
  const char* end = field.text.data() + field.text.size();
  const auto [stop, error] = std::from_chars(field.text.data(), end, score);
  require(field.kind != Field::Kind::kList && error == std::errc() && stop == end &&
              std::isfinite(score),
          "{}: `{}` is {}; a score must be a number", reader.place(), column,
          field.kind == Field::Kind::kList ? "a list" : "\"" + field.text + "\"");
  const double scaled = score / layout.score_scale;
  require(std::abs(scaled) <= 1,
          "{}: the score {} is outside [-{}, {}], and cosines go from -1 to 1; {}", reader.place(),
          field.text, layout.score_scale, layout.score_scale, layout.scale_fix);
  return static_cast<float>(scaled);
}

}  // namespace

Examples read_examples(const Path& path, const FileLayout& layout) {
  records::RecordReader reader(path,
                               {.format = layout.format ? *layout.format : records::format_of(path),
                                .has_header = layout.columns.has_header()});
  const ChosenColumns columns = choose_columns(reader, layout.columns, layout.column_fix);
  const std::vector<std::string> names = columns.list();
  reader.select(names);
  Examples examples{.kind = columns.kind()};
  examples.texts.source = reader.name();
  const auto parts = static_cast<size_t>(examples.parts());
  for (std::vector<Field> fields; reader.next(fields);) {
    for (size_t part = 0; part < parts; ++part) {
      records::Example text;
      text.text = take_text(reader, fields[part], names[part]);
      text.line = reader.line();
      examples.texts.all.push_back(std::move(text));
    }
    if (examples.kind == Kind::kScored) {
      examples.scores.push_back(read_score(reader, fields[parts], names[parts], layout));
    }
  }
  require(examples.size() > 0,
          "{}: has no example: there is nothing after the header (for a file without one, "
          "pass --no-header)",
          examples.source());
  return examples;
}

uint32_t checksum(const Examples& examples) {
  const uint32_t texts = records::checksum(examples.texts);
  return corpus::crc32_of(examples.scores.data(), examples.scores.size() * sizeof(float), texts);
}

}  // namespace onebit::embed
