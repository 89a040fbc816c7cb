// SQuAD's JSON (Rajpurkar et al. 2016, and version 2.0 with unanswerable questions, 2018):
// paragraphs, questions on them, and answers as spans of the paragraph.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/data/corpus/left_out_records.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json_fwd.h"

namespace onebit::squad {

enum class Use {
  kTrain,    // an answer must be found in its paragraph
  kPredict,  // answers are not searched for
  kScore,    // uses only ids and answers: nothing is left out, not even a duplicate id
};

struct Answer {
  std::string text;
  int64_t start = 0;  // as in the file, in code points, only for kTrain
  // For kTrain, the words of the context (ContextWords) that contain it, both inclusive.
  int32_t first_word = -1, last_word = -1;
};

struct Question {
  std::string id;
  std::string text;
  uint32_t paragraph = 0;
  bool impossible = false;      // version 2.0: the paragraph contains no answer
  std::vector<Answer> answers;  // for kTrain only the first that is at its offset
};

struct Paragraph {
  std::string title;
  std::string context;
};

// A question that was left out, with the reason.
struct Problem {
  std::string id;
  std::string reason;
};

struct Dataset {
  std::string source;   // path, for messages
  std::string version;  // as in the file, may be empty
  std::vector<Paragraph> paragraphs;
  std::vector<Question> questions;  // in the order of the file
  std::vector<Problem> problems;
};

// Reads a file, plain or compressed (corpus/byte_stream.h). A question with a problem is left out
// and reported in `problems`: a duplicate id, an empty context or question, and for kTrain no
// answer at its offset. Ids and the version may be numbers. As in Hugging Face's datasets, the
// answers of a question may be one object of two lists, which are empty where there is none, and
// `data`, the whole file, or the lines of a .jsonl file may be questions with their contexts.
// Errors: unreadable, not JSON,
// another structure (with the place in it), no question left. A question of another structure is a
// problem, too, where `left_out` is kBad, and one whose context or text is null where it is
// kMissing.
Dataset read_dataset(const Path& path, Use use,
                     corpus::LeftOut left_out = corpus::LeftOut::kNothing);
Dataset dataset_from_json(const Json& json, const std::string& source, Use use,
                          corpus::LeftOut left_out = corpus::LeftOut::kNothing);

// Whether the paragraphs of some questions contain no answer (SQuAD 2.0): according to the file's
// version, or because a question is marked impossible or, in a file with any answers, has none.
bool has_unanswerable(const Dataset& dataset);

// A line for logs: the rules that follow, and `source`, which has decided so.
std::string describe_abstaining(bool may_be_unanswerable, std::string_view source);

// A checksum of the training data: questions, passages and answers.
uint32_t checksum(const Dataset& dataset);

// "3 of 100 questions were left out: ID: reason; ..." with the first few; empty if there are none.
std::string problem_summary(const Dataset& dataset);

}  // namespace onebit::squad
