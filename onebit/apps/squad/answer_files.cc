#include "onebit/apps/squad/answer_files.h"

#include <utility>

#include "onebit/apps/squad/python_text.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"

namespace onebit::squad {
namespace {

constexpr int kIndent = 4;
constexpr FileKind kAnswersFile = {"a file of answers", uint64_t{512} << 20};

// The text of an object with many keys, written one key at a time.
class ObjectText {
 public:
  void add(const std::string& key, const Json& value) {
    text_ += text_.empty() ? "{\n" : ",\n";
    text_.append(kIndent, ' ');
    text_ += python_json(key, 0) + ": " + python_json(value, kIndent, 1);
  }
  std::string finish() { return text_.empty() ? "{}\n" : std::move(text_) + "\n}\n"; }

 private:
  std::string text_;
};

Json n_best_json(const DecodedAnswer& answer) {
  Json list = Json::array();
  for (const AnswerCandidate& one : answer.best) {
    list.push_back({{"text", one.text},
                    {"probability", one.probability},
                    {"start_logit", one.start_logit},
                    {"end_logit", one.end_logit}});
  }
  return list;
}

// Calls add(id, value) for every entry of the object in `path`.
template <typename Add>
void read_by_id(const Path& path, bool (Json::*is_right)() const noexcept, const char* wanted,
                const Add& add) {
  const Json json = parse_json(read_given_file(path, kAnswersFile), path.string());
  require(json.is_object(), "{}: an object of question ids was expected", path.string());
  for (const auto& item : json.items()) {
    require((item.value().*is_right)(), "{}: question {}: {} was expected", path.string(),
            item.key(), wanted);
    add(item.key(), item.value());
  }
}

}  // namespace

Predictions predictions_of(const Dataset& dataset, const std::vector<DecodedAnswer>& answers) {
  Predictions predictions;
  for (const Problem& problem : dataset.problems) predictions[problem.id] = "";
  for (size_t i = 0; i < answers.size(); ++i) {
    predictions[dataset.questions[i].id] = answers[i].text;
  }
  return predictions;
}

void write_answers(const AnswerFiles& files, const Dataset& dataset,
                   const std::vector<DecodedAnswer>& answers) {
  ObjectText predictions, n_best, null_odds;
  Predictions left_out = predictions_of(dataset, {});
  for (size_t i = 0; i < answers.size(); ++i) {
    const std::string& id = dataset.questions[i].id;
    predictions.add(id, answers[i].text);
    n_best.add(id, n_best_json(answers[i]));
    null_odds.add(id, answers[i].null_odds);
    left_out.erase(id);
  }
  for (const Problem& problem : dataset.problems) {
    if (left_out.erase(problem.id) > 0) predictions.add(problem.id, "");
  }
  write_file_atomically(files.n_best, n_best.finish());
  if (!files.null_odds.empty()) write_file_atomically(files.null_odds, null_odds.finish());
  write_file_atomically(files.predictions, predictions.finish());
}

Predictions read_predictions(const Path& path) {
  Predictions predictions;
  read_by_id(path, &Json::is_string, "a string", [&](const std::string& id, const Json& value) {
    predictions[id] = value.get<std::string>();
  });
  return predictions;
}

NullOdds read_null_odds(const Path& path) {
  NullOdds odds;
  read_by_id(path, &Json::is_number, "a number", [&](const std::string& id, const Json& value) {
    odds.emplace_back(id, value.get<double>());
  });
  return odds;
}

}  // namespace onebit::squad
