#include "onebit/apps/embed/text_columns.h"

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/listed.h"
#include "onebit/training/finetune/columns.h"

namespace onebit::embed {
namespace {

constexpr size_t kMaxNamesListed = 30;

std::string columns_there(const finetune::RecordReader& reader) {
  return reader.names().empty() ? "the file is read without a header"
                                : "there are " + listed(reader.names(), kMaxNamesListed);
}

// A file with several negatives per anchor would train as pairs without any of them.
void refuse_other_negatives(const finetune::RecordReader& reader, const std::string& fix) {
  for (const std::string& name : reader.names()) {
    const bool is_negative = name == "neg" || name.starts_with("neg_") ||
                             name.starts_with("negative") || name.starts_with("hard_neg");
    require(!is_negative,
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

bool Columns::has_header() const {
  return finetune::Columns{.text = anchor,
                           .text_pair = positive,
                           .label = negative.empty() ? score : negative,
                           .header = header}
      .has_header();
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
  finetune::UsualNames usual(reader);
  ChosenColumns chosen = {.anchor = columns.anchor,
                          .positive = columns.positive,
                          .negative = columns.negative,
                          .score = columns.score};
  if (chosen.anchor.empty()) {
    chosen.anchor = usual.find_required({"anchor", "query", "question", "sentence1", "text"});
  }
  if (chosen.positive.empty()) {
    chosen.positive = usual.find_required({"positive", "answer", "sentence2", "text_pair"});
  }
  require(!chosen.anchor.empty(),
          "{}: which column contains the anchor, the first text? None is called anchor, query, "
          "question, sentence1 or text: {}; {}",
          reader.name(), columns_there(reader), fix);
  require(
      !chosen.positive.empty(),
      "{}: which column contains the positive, the text that matches the anchor? None is called "
      "positive, answer, sentence2 or text_pair: {}; {}",
      reader.name(), columns_there(reader), fix);
  // If one of the two is named, a column with the usual name of the other has another meaning.
  if (chosen.negative.empty() && chosen.score.empty()) {
    chosen.negative = usual.find({"negative"});
    chosen.score = usual.find({"score", "similarity"});
  }
  const bool are_found = columns.anchor.empty() && columns.positive.empty();
  if (are_found && chosen.negative.empty() && chosen.score.empty()) {
    refuse_other_negatives(reader, fix);
  }
  require(chosen.negative.empty() || chosen.score.empty(),
          "{}: has a column for a negative ({}) and one for a score ({}), and an example has at "
          "most one of them; {}",
          reader.name(), chosen.negative, chosen.score, fix);
  reader.expect_no(usual.missed(), fix);
  return chosen;
}

std::string choose_text(finetune::RecordReader& reader, const std::string& given) {
  if (!given.empty()) return given;
  finetune::UsualNames usual(reader);
  const std::string found = usual.find_required({"text", "sentence"});
  reader.expect_no(usual.missed(), "give --text");
  if (!found.empty()) return found;
  require(reader.names().size() == 1,
          "{}: which column contains the text? None is called text or sentence: {}; give --text",
          reader.name(), columns_there(reader));
  return reader.names().front();
}

}  // namespace onebit::embed
