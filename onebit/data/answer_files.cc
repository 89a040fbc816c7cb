#include "onebit/data/answer_files.h"

#include <utility>

#include "onebit/data/python_json.h"

namespace onebit::data {
namespace {

constexpr int kIndent = 4;

// An object of many keys, written a key at a time.
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

}  // namespace

Predictions predictions_of(const SquadDataset& dataset, const std::vector<DecodedAnswer>& answers) {
  Predictions predictions;
  for (const SquadProblem& problem : dataset.problems) predictions[problem.id] = "";
  for (size_t i = 0; i < answers.size(); ++i) {
    predictions[dataset.questions[i].id] = answers[i].text;
  }
  return predictions;
}

void write_answers(const AnswerFiles& files, const SquadDataset& dataset,
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
  for (const SquadProblem& problem : dataset.problems) {
    if (left_out.erase(problem.id) > 0) predictions.add(problem.id, "");
  }
  write_file_atomically(files.n_best, n_best.finish());
  if (!files.null_odds.empty()) write_file_atomically(files.null_odds, null_odds.finish());
  write_file_atomically(files.predictions, predictions.finish());
}

}  // namespace onebit::data
