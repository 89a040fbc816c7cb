#include "onebit/apps/embed/example_reader.h"

#include <charconv>
#include <cmath>
#include <iterator>

#include "onebit/data/corpus/byte_stream.h"
#include "onebit/ground/base/checksum.h"
#include "onebit/ground/base/error.h"
#include "onebit/training/finetune/example_reader.h"

namespace onebit::embed {

namespace {

using finetune::ColumnRole;

const ColumnRole kAnchor = {"anchor, the first text",
                            {"anchor", "query", "question", "sentence1", "text"}};
const ColumnRole kPositive = {"positive, the text that matches the anchor",
                              {"positive", "answer", "sentence2", "text_pair"}};
const ColumnRole kNegative = {"negative", {"negative"}};
const ColumnRole kScore = {"score", {"score", "similarity", "scores"}};
// sentence-transformers takes these for a score, too. They are also what classes are called, which
// may lie beside a score, and which read_score() refuses: the pairs would be trained as matching
// texts.
const ColumnRole kLabel = {"score", {"label", "labels"}};
const ColumnRole kText = {"text", {"text", "sentence"}};

bool is_label(const std::string& column) {
  return column == "label" || column == "labels";
}

bool is_other_negative(const std::string& name) {
  return name == "neg" || name.starts_with("neg_") ||
         (name.starts_with("negative") && name != kNegative.usual_names.front()) ||
         name.starts_with("hard_neg");
}

// A file with several negatives per anchor would train as pairs without any of them.
void refuse_other_negatives(const finetune::RecordReader& reader, const std::string& fix) {
  for (const std::string& name : reader.names()) {
    require(name != kNegative.usual_names.front(),
            "{}: the first record's `{}` is null, so that the negatives of the others would not be "
            "read: give each record one, or none of them the key",
            reader.name(), name);
    require(!is_other_negative(name),
            "{}: the negatives in {} would not be read: an example has one negative, in the column "
            "negative; write a record for each of them, or, to read only some columns, {}",
            reader.name(), name, fix);
  }
}

}  // namespace

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::kPairs:
      return "pairs";
    case Kind::kTriplets:
      return "triplets";
    case Kind::kScored:
      return "scored pairs";
  }
  return "";
}

int64_t parts_of(Kind kind) {
  return kind == Kind::kTriplets ? 3 : 2;
}

Kind ChosenColumns::kind() const {
  if (!score.empty()) return Kind::kScored;
  return negative.empty() ? Kind::kPairs : Kind::kTriplets;
}

std::vector<std::string> ChosenColumns::list() const {
  std::vector<std::string> columns = {anchor, positive};
  if (!negative.empty()) columns.push_back(negative);
  if (!score.empty()) columns.push_back(score);
  return columns;
}

ChosenColumns choose_columns(finetune::RecordReader& reader, const Columns& columns,
                             const std::string& fix) {
  finetune::ColumnFinder finder(reader, fix);
  ChosenColumns chosen = {.anchor = finder.require_column(columns.anchor, kAnchor),
                          .positive = finder.require_column(columns.positive, kPositive),
                          .negative = columns.negative,
                          .score = columns.score};
  // If one of the two is named, a column with the usual name of the other has another meaning.
  if (chosen.negative.empty() && chosen.score.empty()) {
    chosen.negative = finder.find(kNegative);
    chosen.score = finder.find(kScore);
    if (chosen.score.empty()) chosen.score = finder.find(kLabel);
    // A triplet says without a label which texts match.
    if (!chosen.negative.empty() && is_label(chosen.score)) chosen.score.clear();
  }
  const bool are_found = columns.anchor.empty() && columns.positive.empty();
  if (are_found && chosen.negative.empty() && chosen.score.empty()) {
    refuse_other_negatives(reader, fix);
  }
  // A record has one negative (refuse_other_negatives()), in later JSON lines too.
  if (are_found) finder.expect_no(is_other_negative);
  require(chosen.negative.empty() ||
              (chosen.negative != chosen.positive && chosen.negative != chosen.anchor),
          "{}: {} is the negative and also another part of each example, so nothing would be "
          "learned; {}",
          reader.name(), chosen.negative, fix);
  require(chosen.negative.empty() || chosen.score.empty(),
          "{}: has a column for a negative ({}) and one for a score ({}), and an example has at "
          "most one of them; {}",
          reader.name(), chosen.negative, chosen.score, fix);
  finder.finish();
  return chosen;
}

std::string choose_text(finetune::RecordReader& reader, const std::string& given) {
  if (!given.empty()) return given;
  finetune::ColumnFinder finder(reader, "give --text");
  const std::string found = finder.find_required(kText);
  const bool is_only = found.empty() && reader.names().size() == 1;
  std::string chosen = is_only ? reader.names().front() : finder.require_column(found, kText);
  finder.finish();
  return chosen;
}

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

// Ends errors about a column that may have the classes of pairs ("entailment", 2).
std::string label_fix(const std::string& column, const FileLayout& layout) {
  if (!layout.columns.score.empty() || !is_label(column)) return "";
  return fmt::format(
      ". `{}` is read as the score of the two texts; if it is a class, keep the records whose "
      "texts match, without this column, or select another column with --score",
      column);
}

float read_score(const finetune::RecordReader& reader, const Field& field,
                 const std::string& column, const FileLayout& layout) {
  double score = 0;
  const char* end = field.text.data() + field.text.size();
  const auto [stop, error] = std::from_chars(field.text.data(), end, score);
  require(field.kind != Field::Kind::kList && error == std::errc() && stop == end &&
              std::isfinite(score),
          "{}: `{}` is {}; a score must be a number{}", reader.place(), column,
          field.kind == Field::Kind::kList ? "a list" : "\"" + field.text + "\"",
          label_fix(column, layout));
  const double scaled = score / layout.score_scale;
  require(std::abs(scaled) <= 1,
          "{}: the score {} is outside [-{}, {}], and cosines go from -1 to 1; set "
          "data.score_scale (--score-scale) to the greatest score{}",
          reader.place(), field.text, layout.score_scale, layout.score_scale,
          label_fix(column, layout));
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
  return crc32_of(examples.scores.data(), examples.scores.size() * sizeof(float), texts);
}

namespace {

using finetune::Field;
using finetune::FileFormat;

bool is_of_lines(const Path& path) {
  return corpus::unpacked_name(path).extension() == ".txt";
}

// The format of a file of records. Empty: a file of lines.
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
