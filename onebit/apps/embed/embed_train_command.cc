#include <fmt/format.h>

#include <memory>

#include "onebit/apps/embed/embed_command.h"
#include "onebit/apps/embed/embed_task.h"
#include "onebit/ground/base/json.h"
#include "onebit/training/commands/packed_files.h"
#include "onebit/training/finetune/fine_tuning_command.h"

namespace onebit::embed {
namespace {

struct Arguments : finetune::FineTuningArguments {
  EmbedFileOptions files;
};

// The command line's settings of the files become part of the recipe, which the run stores.
void write_files_into(Json& recipe, const EmbedFileOptions& files) {
  files.write_into(recipe);
  commands::set_text(recipe, "data", "anchor", files.anchor);
  commands::set_text(recipe, "data", "positive", files.positive);
  commands::set_text(recipe, "data", "negative", files.negative);
  commands::set_text(recipe, "data", "score", files.score);
  if (!files.score_scale) return;
  // A section that is not an object is left to the recipe's reader, which reports it.
  Json& data = recipe["data"];
  if (data.is_null() || data.is_object()) data["score_scale"] = *files.score_scale;
}

int run(const Arguments& given) {
  return finetune::fine_tune(given, embed::run_embed_training,
                             [&](Json& recipe) { write_files_into(recipe, given.files); });
}

}  // namespace

void add_embed_train(commands::Command embed, commands::Action& chosen) {
  auto given = std::make_shared<Arguments>();
  const commands::Command command = embed.add_subcommand(
      "train",
      "Fine-tune a BERT on texts that belong together; under mpirun, data parallel on all ranks. "
      "Leaves in --output the best model by the recipe's metric as a folder that "
      "sentence-transformers opens, and its scores on --dev");
  finetune::add_fine_tuning_options(
      command, *given,
      fmt::format("Pairs of texts, triplets, or pairs with a score: TSV, CSV or JSON lines ({})",
                  commands::kPlainOrPacked),
      "The same, of any of the three kinds, to evaluate on at the end of each epoch and every "
      "run.evaluate_every steps");
  add_embed_file_options(command, given->files);
  commands::add_recipe_options(command, given->recipe);
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::embed
