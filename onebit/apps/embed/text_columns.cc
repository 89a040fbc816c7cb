#include "onebit/apps/embed/text_columns.h"

#include "onebit/ground/base/error.h"

namespace onebit::embed {
namespace {

using finetune::ColumnRole;

const ColumnRole kAnchor = {"anchor, the first text",
                            {"anchor", "query", "question", "sentence1", "text"}};
const ColumnRole kPositive = {"positive, the text that matches the anchor",
                              {"positive", "answer", "sentence2", "text_pair"}};
const ColumnRole kNegative = {"negative", {"negative"}};
const ColumnRole kScore = {"score", {"score", "similarity"}};
const ColumnRole kText = {"text", {"text", "sentence"}};

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
  }
  const bool are_found = columns.anchor.empty() && columns.positive.empty();
  if (are_found && chosen.negative.empty() && chosen.score.empty()) {
    refuse_other_negatives(reader, fix);
  }
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

}  // namespace onebit::embed
