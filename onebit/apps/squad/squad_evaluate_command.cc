#include <fmt/format.h>

#include <memory>

#include "onebit/apps/squad/answer_files.h"
#include "onebit/apps/squad/python_text.h"
#include "onebit/apps/squad/score.h"
#include "onebit/apps/squad/squad_command.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/wording.h"
#include "onebit/training/commands/usage.h"

namespace onebit::squad {
namespace {

constexpr size_t kMissingListed = 5;

struct Arguments {
  std::string data, predictions, null_odds, rules = "auto";
  double threshold = 1.0;
  bool json = false;
};

ScoreRules chosen_rules(const Arguments& given, const Dataset& dataset) {
  // Only the rules of version 2.0 use null odds.
  if (given.rules == "auto" && !given.null_odds.empty()) return ScoreRules::kVersion2;
  if (given.rules == "auto") return squad::rules_for(dataset);
  return given.rules == "1.1" ? ScoreRules::kVersion1 : ScoreRules::kVersion2;
}

void warn_of_missing(const Score& score) {
  if (score.missing.empty()) return;
  log_warning("{} questions have no prediction and {}: {}", score.missing.size(),
              score.rules == ScoreRules::kVersion1
                  ? "count 0"
                  : "are skipped, as the official script of version 2.0 does",
              listed(score.missing, kMissingListed));
}

void print_part(const char* name, const Score::Part& part) {
  fmt::print("{:<10} {:>6.2f}  {:>6.2f}  {:>9}\n", name, part.exact, part.f1, part.total);
}

void print_score(const Score& score) {
  fmt::print("{:<10} {:>6}  {:>6}  {:>9}\n", "", "EM", "F1", "questions");
  print_part("all", score.all);
  if (score.has_answer) print_part("answerable", *score.has_answer);
  if (score.no_answer) print_part("not", *score.no_answer);
  if (score.best_exact && score.best_f1) {
    fmt::print("best       {:>6.2f}  {:>6.2f}  at thresholds {:.4g} and {:.4g}\n",
               score.best_exact->score, score.best_f1->score, score.best_exact->threshold,
               score.best_f1->threshold);
  }
}

int run(const Arguments& given) {
  const Dataset dataset = squad::read_dataset(given.data, Use::kScore);
  const Predictions predictions = squad::read_predictions(given.predictions);
  NullOdds null_odds;
  if (!given.null_odds.empty()) null_odds = squad::read_null_odds(given.null_odds);
  const Score score =
      squad::score_predictions(dataset, predictions, chosen_rules(given, dataset),
                               given.null_odds.empty() ? nullptr : &null_odds, given.threshold);
  warn_of_missing(score);
  if (given.json) {
    const int indent = score.rules == ScoreRules::kVersion1 ? 0 : 2;
    fmt::print("{}\n", squad::python_json(squad::official_json(score), indent));
  } else {
    print_score(score);
  }
  return 0;
}

}  // namespace

void add_squad_evaluate(commands::Command squad, commands::Action& chosen) {
  auto given = std::make_shared<Arguments>();
  const commands::Command command = squad.add_subcommand(
      "evaluate", "Score predictions: EM and F1, equal to the official scripts in every digit");
  command
      .add_option("data", given->data,
                  fmt::format("SQuAD file (JSON, {})", commands::kPlainOrPacked))
      .required();
  command.add_option("predictions", given->predictions, "predictions.json: {\"id\": \"answer\"}")
      .required();
  const commands::Option null_odds =
      command.add_option("--na-probs,-n", given->null_odds,
                         "Version 2.0: file {\"id\": number}, where a higher number favours no "
                         "answer. Adds the best thresholds");
  command
      .add_option("--na-prob-thresh,-t", given->threshold,
                  "Treat a question as unanswered if its number in --na-probs is above this")
      .needs(null_odds)
      .capture_default_str();
  command
      .add_option("--rules", given->rules,
                  "Rules of version 1.1 or 2.0. auto: 2.0 with --na-probs, else as the answers in "
                  "the file are")
      .check(commands::one_of({"auto", "1.1", "2.0"}))
      .capture_default_str();
  command.add_flag("--json", given->json, "Print the same text as the official script");
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::squad
