// EM and F1 of predicted answers, equal in every digit to SQuAD's official scripts evaluate-v1.1.py
// (Rajpurkar et al. 2016) and evaluate-v2.0.py (2018, under a Python before 3.12, whose sum() adds
// one number after the other).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "onebit/apps/squad/dataset.h"
#include "onebit/ground/base/json_fwd.h"

namespace onebit::squad {

// An answer in the form in which SQuAD's official scoring compares it.

// Lower-cases (all of Unicode, with its final sigma), deletes the 32 punctuation characters of
// ASCII, replaces the whole words a, an and the by spaces (words of any script, as Python's \b
// delimits them), and replaces white space by single spaces.
std::string normalized_answer(std::string_view utf8);

// Its words.
std::vector<std::string> answer_words(std::string_view utf8);

enum class ScoreRules {
  kVersion1,  // a question without a prediction counts as 0
  kVersion2,  // unanswerable questions. One without a prediction is left out of every mean
};

// Version 2 if the file's version is or it contains a question without an answer.
ScoreRules rules_for(const Dataset& dataset);

// The maximum over the answers. exact and f1 are from 0 to 1.
struct AnswerScore {
  double exact = 0, f1 = 0;
};
AnswerScore score_answer(const std::string& predicted, const std::vector<Answer>& answers,
                         ScoreRules rules);

using Predictions = std::unordered_map<std::string, std::string>;  // by question id
// Question id and evidence for "no answer" (higher is stronger), in the order of the file, which
// breaks ties.
using NullOdds = std::vector<std::pair<std::string, double>>;

struct Score {
  struct Part {
    double exact = 0, f1 = 0;  // in percent
    int64_t total = 0;         // questions
  };
  struct Best {
    double score = 0, threshold = 0;
  };

  ScoreRules rules = ScoreRules::kVersion1;
  Part all;
  std::optional<Part> has_answer, no_answer;  // version 2
  std::optional<Best> best_exact, best_f1;    // version 2 with null odds
  std::vector<std::string> missing;           // questions without a prediction
};

// `null_odds` may be null. A question whose odds exceed `threshold` counts as answered with "". The
// dataset must have been read for kScore. Errors: a question of version 1 without answers, no
// prediction for any question, null odds that lack a predicted question.
Score score_predictions(const Dataset& dataset, const Predictions& predictions, ScoreRules rules,
                        const NullOdds* null_odds = nullptr, double threshold = 1.0);

// The output of the official script: {"exact_match", "f1"} or {"exact", "f1", "total", ...}.
Json official_json(const Score& score);

}  // namespace onebit::squad
