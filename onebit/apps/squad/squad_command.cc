#include "onebit/apps/squad/squad_command.h"

#include <fmt/format.h>

#include <memory>

#include "onebit/apps/squad/squad_task.h"
#include "onebit/training/commands/usage.h"
#include "onebit/training/finetune/fine_tuning_command.h"

namespace onebit::squad {

void add_squad(commands::Command program, commands::Action& chosen) {
  const commands::Command squad = program.add_subcommand(
      "squad", "Answer questions about a text: fine-tune, predict, score, ask (SQuAD 1.1 and 2.0)");
  squad.require_subcommand();
  add_squad_train(squad, chosen);
  add_squad_predict(squad, chosen);
  add_squad_evaluate(squad, chosen);
  add_squad_ask(squad, chosen);
  add_squad_windows(squad, chosen);
}

void add_window_options(const commands::KeyOptions& keys) {
  keys.add("--max-sequence-length", "data.max_sequence_length");
  keys.add("--doc-stride", "data.doc_stride");
  keys.add("--max-question-length", "data.max_question_length");
}

void add_answer_options(const commands::KeyOptions& keys) {
  keys.add("--n-best-size,--n-best", "answers.n_best_size");
  keys.add("--max-answer-length", "answers.max_answer_length");
  keys.add("--null-score-diff-threshold,--null-threshold", "answers.null_score_diff_threshold");
  keys.add_flag("--projection", "answers.text", "projection");
  keys.add_flag("--no-projection", "answers.text", "offsets");
}

SquadConfig config_of_model(const Path& model, const commands::Overrides& overrides) {
  // A model of another task fails when it is opened, since it has no answer head.
  return parse_squad_recipe(finetune::recipe_of_model(model, kSquadTask, overrides.all()));
}

void add_squad_train(commands::Command squad, commands::Action& chosen) {
  auto given = std::make_shared<finetune::FineTuningArguments>();
  const commands::Command command = squad.add_subcommand(
      "train",
      "Fine-tune an encoder on questions, data parallel on the ranks of onebit launch, mpirun or "
      "srun. Leaves in --output the best model by F1 as a Hugging Face folder, and its answers to "
      "--dev");
  finetune::add_fine_tuning_options(
      command, *given, fmt::format("SQuAD file (JSON, {})", commands::kPlainOrPacked),
      "SQuAD file to evaluate on at the end of each epoch and every run.evaluate_every "
      "steps");
  const commands::KeyOptions keys(command, read_squad_recipe, given->recipe.overrides);
  finetune::add_skip_bad_records(keys);
  commands::add_recipe_options(command, keys, given->recipe);
  command.callback([given, &chosen] {
    chosen = [given] { return finetune::fine_tune(*given, make_squad_task); };
  });
}

}  // namespace onebit::squad
