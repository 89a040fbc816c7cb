#include <fmt/format.h>

#include <memory>

#include "onebit/apps/tag/tag_command.h"
#include "onebit/apps/tag/tag_task.h"
#include "onebit/training/commands/packed_files.h"
#include "onebit/training/finetune/fine_tuning_command.h"
#include "onebit/training/finetune/record_file_options.h"

namespace onebit::tag {

void add_tag_train(commands::Command tag, commands::Action& chosen) {
  auto given = std::make_shared<finetune::FineTuningArguments>();
  const commands::Command command =
      tag.add_subcommand("train",
                         "Fine-tune a BERT on tagged sentences, under mpirun data parallel on all "
                         "ranks. Leaves in --output the best model by the recipe's metric as a "
                         "Hugging Face folder, and its scores on --dev");
  finetune::add_fine_tuning_options(
      command, *given,
      fmt::format("Tagged sentences: CoNLL, CoNLL-U or JSON lines ({})", commands::kPlainOrPacked),
      "The same, to evaluate on at the end of each epoch and every run.evaluate_every steps");
  const commands::KeyOptions keys(command, read_tag_recipe, given->recipe.overrides);
  finetune::add_skip_bad_records(keys);
  add_tag_file_options(keys, true);
  commands::add_recipe_options(command, keys, given->recipe);
  command.callback([given, &chosen] {
    chosen = [given] { return finetune::fine_tune(*given, make_tag_task); };
  });
}

}  // namespace onebit::tag
