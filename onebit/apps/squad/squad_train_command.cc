#include <fmt/format.h>

#include <memory>

#include "onebit/apps/squad/squad_command.h"
#include "onebit/apps/squad/squad_task.h"
#include "onebit/training/commands/packed_files.h"
#include "onebit/training/finetune/fine_tuning_command.h"
#include "onebit/training/finetune/record_file_options.h"

namespace onebit::squad {

void add_squad_train(commands::Command squad, commands::Action& chosen) {
  auto given = std::make_shared<finetune::FineTuningArguments>();
  const commands::Command command = squad.add_subcommand(
      "train",
      "Fine-tune a BERT on questions, under mpirun data parallel on all ranks. Leaves in --output "
      "the best model by F1 as a Hugging Face folder, and its answers to --dev");
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
