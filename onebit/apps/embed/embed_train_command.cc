#include <fmt/format.h>

#include <memory>

#include "onebit/apps/embed/embed_command.h"
#include "onebit/apps/embed/embed_task.h"
#include "onebit/training/commands/packed_files.h"
#include "onebit/training/finetune/fine_tuning_command.h"
#include "onebit/training/finetune/record_file_options.h"

namespace onebit::embed {

void add_embed_train(commands::Command embed, commands::Action& chosen) {
  auto given = std::make_shared<finetune::FineTuningArguments>();
  const commands::Command command = embed.add_subcommand(
      "train",
      "Fine-tune a BERT on texts that belong together, under mpirun data parallel on all ranks. "
      "Leaves in --output the best model by the recipe's metric as a folder that "
      "sentence-transformers opens, and its scores on --dev");
  finetune::add_fine_tuning_options(
      command, *given,
      fmt::format("Pairs of texts, triplets, or pairs with a score: TSV, CSV or JSON lines ({})",
                  commands::kPlainOrPacked),
      "The same, of any of the three kinds, to evaluate on at the end of each epoch and every "
      "run.evaluate_every steps");
  const commands::KeyOptions keys(command, read_embed_recipe, given->recipe.overrides);
  finetune::add_skip_bad_records(keys);
  add_embed_file_options(keys);
  commands::add_recipe_options(command, keys, given->recipe);
  command.callback([given, &chosen] {
    chosen = [given] { return finetune::fine_tune(*given, make_embed_task); };
  });
}

}  // namespace onebit::embed
