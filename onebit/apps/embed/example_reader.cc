#include "onebit/apps/embed/example_reader.h"

#include <charconv>
#include <cmath>
#include <iterator>

#include "onebit/data/corpus/crc32.h"
#include "onebit/ground/base/error.h"

namespace onebit::embed {
namespace {

using finetune::Field;

constexpr const char* kColumnFix = "set data.anchor, data.positive, data.negative and data.score";

std::string take_text(const finetune::RecordReader& reader, Field& field,
                      const std::string& column) {
  require(field.kind == Field::Kind::kText, "{}: `{}` is {}; a text must be a string",
          reader.place(), column,
          field.kind == Field::Kind::kList ? "a list" : "the number " + field.text);
  return std::move(field.text);
}

float read_score(const finetune::RecordReader& reader, const Field& field,
                 const std::string& column, const FileLayout& layout) {
  double score = 0;
  const char* end = field.text.data() + field.text.size();
  const auto [stop, error] = std::from_chars(field.text.data(), end, score);
  require(field.kind != Field::Kind::kList && error == std::errc() && stop == end &&
              std::isfinite(score),
          "{}: `{}` is {}; a score must be a number", reader.place(), column,
          field.kind == Field::Kind::kList ? "a list" : "\"" + field.text + "\"");
  const double scaled = score / layout.score_scale;
  require(
      std::abs(scaled) <= 1,
      "{}: the score {} is outside [-{}, {}], and cosines go from -1 to 1; set data.score_scale "
      "to the greatest score",
      reader.place(), field.text, layout.score_scale, layout.score_scale);
  return static_cast<float>(scaled);
}

// Appends a whole example or nothing.
void take_example(const finetune::RecordReader& reader, std::vector<Field>& fields,
                  const ChosenColumns& columns, const FileLayout& layout, Examples& examples) {
  const std::vector<std::string> names = columns.list();
  const auto parts = static_cast<size_t>(examples.parts());
  std::vector<finetune::Example> texts(parts);
  for (size_t part = 0; part < parts; ++part) {
    texts[part].text = take_text(reader, fields[part], names[part]);
    texts[part].line = reader.line();
  }
  if (examples.kind == Kind::kScored) {
    examples.scores.push_back(read_score(reader, fields[parts], names[parts], layout));
  }
  std::move(texts.begin(), texts.end(), std::back_inserter(examples.texts.all));
}

}  // namespace

Examples read_examples(const Path& path, const FileLayout& layout) {
  finetune::RecordReader reader(
      path, {.format = layout.format ? *layout.format : finetune::format_of(path),
             .has_header = layout.columns.has_header(),
             .left_out = layout.left_out});
  const ChosenColumns columns = choose_columns(reader, layout.columns, kColumnFix);
  reader.select(columns.list());
  Examples examples{.kind = columns.kind()};
  examples.texts.source = reader.name();
  for (std::vector<Field> fields; reader.next(fields);) {
    try {
      take_example(reader, fields, columns, layout, examples);
    } catch (const Error& error) {
      reader.leave_out(error);
    }
  }
  examples.texts.left_out = reader.left_out().summary();
  if (layout.columns.anchor.empty()) examples.texts.unread = reader.unread(kColumnFix);
  require(examples.size() > 0 || examples.texts.left_out.empty(), "{}: has no example: {}",
          examples.source(), examples.texts.left_out);
  require(examples.size() > 0,
          "{}: has no example: there is nothing after the header (for a file without one, set "
          "data.header to no)",
          examples.source());
  return examples;
}

uint32_t checksum(const Examples& examples) {
  const uint32_t texts = finetune::checksum(examples.texts);
  return corpus::crc32_of(examples.scores.data(), examples.scores.size() * sizeof(float), texts);
}

}  // namespace onebit::embed
