#include "onebit/apps/squad/score.h"

#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <map>

#include "onebit/apps/squad/python_text.h"
#include "onebit/data/text/utf8.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"

namespace onebit::squad {

namespace {

bool is_ascii_punctuation(char32_t c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
         (c >= '{' && c <= '~');
}

// Python's \w without the underscore, which has been removed already: letters and characters with a
// numeric value.
bool is_word_character(char32_t c) {
  const auto code_point = static_cast<UChar32>(c);
  return u_isalpha(code_point) != 0 ||
         u_getIntPropertyValue(code_point, UCHAR_NUMERIC_TYPE) != U_NT_NONE;
}

bool is_article(std::string_view word) {
  return word == "a" || word == "an" || word == "the";
}

std::string lower_case(std::string_view utf8) {
  std::string lowered;
  icu::UnicodeString::fromUTF8({utf8.data(), static_cast<int32_t>(utf8.size())})
      .toLower(icu::Locale::getRoot())
      .toUTF8String(lowered);
  return lowered;
}

// Collects characters, and drops articles when their run of word characters ends.
class AnswerWords {
 public:
  void add(char32_t c) {
    if (is_python_space(c)) {
      end_word();
    } else {
      const bool is_part = is_word_character(c);
      if (!is_part) end_run();
      text::append_utf8(c, is_part ? run_ : word_);
    }
  }
  std::vector<std::string> finish() {
    end_word();
    return std::move(words_);
  }

 private:
  void end_run() {
    if (is_article(run_)) {
      if (!word_.empty()) words_.push_back(std::move(word_));
      word_.clear();
    } else {
      word_ += run_;
    }
    run_.clear();
  }
  void end_word() {
    end_run();
    if (!word_.empty()) words_.push_back(std::move(word_));
    word_.clear();
  }

  std::vector<std::string> words_;
  std::string word_, run_;
};

}  // namespace

std::vector<std::string> answer_words(std::string_view utf8) {
  const std::string lowered = lower_case(utf8);
  AnswerWords words;
  for (std::string_view rest = lowered; !rest.empty();) {
    const text::DecodedCharacter c = text::decode_utf8(rest);
    if (!is_ascii_punctuation(c.code_point)) words.add(c.code_point);
    rest.remove_prefix(c.size_bytes);
  }
  return words.finish();
}

std::string normalized_answer(std::string_view utf8) {
  std::string text;
  for (const std::string& word : answer_words(utf8)) {
    if (!text.empty()) text += ' ';
    text += word;
  }
  return text;
}

namespace {

using Words = std::vector<std::string>;

int64_t words_in_both(const Words& a, const Words& b) {
  std::map<std::string_view, int64_t> counts;
  for (const std::string& word : a) ++counts[word];
  int64_t same = 0;
  for (const std::string& word : b) same += counts[word]-- > 0 ? 1 : 0;
  return same;
}

double f1_of(const Words& predicted, const Words& answer, ScoreRules rules) {
  if (rules == ScoreRules::kVersion2 && (predicted.empty() || answer.empty())) {
    return predicted == answer ? 1 : 0;
  }
  const auto same = static_cast<double>(words_in_both(predicted, answer));
  if (same == 0) return 0;
  const double precision = same / static_cast<double>(predicted.size());
  const double recall = same / static_cast<double>(answer.size());
  return (2 * precision * recall) / (precision + recall);
}

// The score of one question. Questions are in the order in which ids first appear.
struct Scored {
  const std::string* id;
  bool answerable;
  bool says_nothing = false;  // the prediction is ""
  bool predicted = false;
  AnswerScore raw, final;
};

Score::Part mean_of(const std::vector<Scored>& scores, const auto& counts) {
  Score::Part part;
  for (const Scored& score : scores) {
    if (!score.predicted || !counts(score)) continue;
    part.exact += score.final.exact;
    part.f1 += score.final.f1;
    ++part.total;
  }
  const auto total = static_cast<double>(part.total);
  if (part.total > 0) part = {100.0 * part.exact / total, 100.0 * part.f1 / total, part.total};
  return part;
}

Score score_version1(const Dataset& dataset, const Predictions& predictions) {
  Score score;
  for (const Question& question : dataset.questions) {
    require(!question.answers.empty(),
            "{}: question {} has no answer to compare with; score it by the rules of version 2.0",
            dataset.source, question.id);
    const auto found = predictions.find(question.id);
    if (found == predictions.end()) {
      score.missing.push_back(question.id);
      continue;
    }
    const AnswerScore one = score_answer(found->second, question.answers, ScoreRules::kVersion1);
    score.all.exact += one.exact;
    score.all.f1 += one.f1;
  }
  const auto total = static_cast<double>(dataset.questions.size());
  score.all = {100.0 * score.all.exact / total, 100.0 * score.all.f1 / total,
               static_cast<int64_t>(dataset.questions.size())};
  return score;
}

std::vector<Scored> score_all(const Dataset& dataset, const Predictions& predictions) {
  std::vector<Scored> scores;
  std::unordered_map<std::string_view, size_t> place;
  for (const Question& question : dataset.questions) {
    // Of questions with the same id the last one counts, in the position of the first.
    const auto [here, is_first] = place.try_emplace(question.id, scores.size());
    if (is_first) scores.emplace_back();
    Scored& score = scores[here->second];
    score = {.id = &question.id, .answerable = !question.answers.empty()};
    const auto found = predictions.find(question.id);
    if (found == predictions.end()) continue;
    score.predicted = true;
    score.says_nothing = found->second.empty();
    score.raw = score_answer(found->second, question.answers, ScoreRules::kVersion2);
    score.final = score.raw;
  }
  return scores;
}

// Replaces answers by "" if their odds exceed the threshold.
void apply_threshold(std::vector<Scored>& scores, const NullOdds& null_odds, double threshold) {
  std::unordered_map<std::string_view, double> odds;
  for (const auto& [id, value] : null_odds) odds[id] = value;
  for (Scored& score : scores) {
    if (!score.predicted) continue;
    const auto found = odds.find(*score.id);
    require(found != odds.end(),
            "the file of null odds has no entry for the question {}, which the predictions answer: "
            "give the null_odds.json that was written with them",
            *score.id);
    if (found->second > threshold) {
      score.final.exact = score.final.f1 = score.answerable ? 0 : 1;
    }
  }
}

// The best threshold in hindsight: sweeps it upwards from "all questions unanswered".
Score::Best best_threshold(const std::vector<Scored>& scores, const NullOdds& null_odds,
                           double AnswerScore::*measure) {
  std::unordered_map<std::string_view, const Scored*> by_id;
  double current = 0, predicted = 0;
  for (const Scored& score : scores) {
    by_id[*score.id] = &score;
    current += score.answerable ? 0 : 1;
    predicted += score.predicted ? 1 : 0;
  }
  NullOdds sorted = null_odds;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second < b.second; });
  Score::Best best{.score = current, .threshold = 0};
  for (const auto& [id, odds] : sorted) {
    const auto found = by_id.find(id);
    if (found == by_id.end() || !found->second->predicted) continue;
    const Scored& score = *found->second;
    if (score.answerable) {
      current += score.raw.*measure;
    } else if (!score.says_nothing) {
      current -= 1;
    }
    if (current > best.score) best = {.score = current, .threshold = odds};
  }
  best.score = 100.0 * best.score / predicted;
  return best;
}

Score score_version2(const Dataset& dataset, const Predictions& predictions,
                     const NullOdds* null_odds, double threshold) {
  std::vector<Scored> scores = score_all(dataset, predictions);
  if (null_odds != nullptr) apply_threshold(scores, *null_odds, threshold);
  Score score;
  score.rules = ScoreRules::kVersion2;
  for (const Scored& one : scores) {
    if (!one.predicted) score.missing.push_back(*one.id);
  }
  const auto is_answerable = [](const Scored& one) { return one.answerable; };
  score.all = mean_of(scores, [](const Scored&) { return true; });
  require(score.all.total > 0, "{}: no question has a prediction; do the files match?",
          dataset.source);
  const auto part_of = [&](const auto& counts) -> std::optional<Score::Part> {
    const Score::Part part = mean_of(scores, counts);
    return part.total > 0 ? std::optional(part) : std::nullopt;
  };
  score.has_answer = part_of(is_answerable);
  score.no_answer = part_of([](const Scored& one) { return !one.answerable; });
  if (null_odds != nullptr) {
    score.best_exact = best_threshold(scores, *null_odds, &AnswerScore::exact);
    score.best_f1 = best_threshold(scores, *null_odds, &AnswerScore::f1);
  }
  return score;
}

void add_part(Json& json, const std::string& prefix, const std::optional<Score::Part>& part) {
  if (!part) return;
  json[prefix + "exact"] = part->exact;
  json[prefix + "f1"] = part->f1;
  json[prefix + "total"] = part->total;
}

}  // namespace

ScoreRules rules_for(const Dataset& dataset) {
  return has_unanswerable(dataset) ? ScoreRules::kVersion2 : ScoreRules::kVersion1;
}

AnswerScore score_answer(const std::string& predicted, const std::vector<Answer>& answers,
                         ScoreRules rules) {
  const Words words = answer_words(predicted);
  AnswerScore best;
  bool compared = false;
  const auto compare = [&](const Words& answer) {
    best.exact = std::max(best.exact, words == answer ? 1.0 : 0.0);
    best.f1 = std::max(best.f1, f1_of(words, answer, rules));
    compared = true;
  };
  for (const Answer& answer : answers) {
    const Words wanted = answer_words(answer.text);
    if (rules == ScoreRules::kVersion1 || !wanted.empty()) compare(wanted);
  }
  if (!compared) compare({});
  return best;
}

Score score_predictions(const Dataset& dataset, const Predictions& predictions, ScoreRules rules,
                        const NullOdds* null_odds, double threshold) {
  if (rules == ScoreRules::kVersion2) {
    return score_version2(dataset, predictions, null_odds, threshold);
  }
  require(null_odds == nullptr, "{}: null odds are for version 2.0", dataset.source);
  return score_version1(dataset, predictions);
}

Json official_json(const Score& score) {
  if (score.rules == ScoreRules::kVersion1) {
    return {{"exact_match", score.all.exact}, {"f1", score.all.f1}};
  }
  Json json;
  add_part(json, "", score.all);
  add_part(json, "HasAns_", score.has_answer);
  add_part(json, "NoAns_", score.no_answer);
  if (score.best_exact && score.best_f1) {
    json["best_exact"] = score.best_exact->score;
    json["best_exact_thresh"] = score.best_exact->threshold;
    json["best_f1"] = score.best_f1->score;
    json["best_f1_thresh"] = score.best_f1->threshold;
  }
  return json;
}

}  // namespace onebit::squad
