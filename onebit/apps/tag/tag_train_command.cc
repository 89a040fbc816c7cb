#include <fmt/format.h>

#include <memory>

#include "onebit/apps/tag/tag_command.h"
#include "onebit/apps/tag/tag_task.h"
#include "onebit/training/commands/packed_files.h"
#include "onebit/training/finetune/fine_tuning_command.h"

namespace onebit::tag {
namespace {

struct Arguments : finetune::FineTuningArguments {
  TagFileOptions files;
};

// The command line's settings of the files become part of the recipe, which the run stores.
void write_files_into(Json& recipe, const TagFileOptions& files) {
  if (files.format != "auto") commands::set_text(recipe, "data", "format", files.format);
  commands::set_text(recipe, "data", "tokens", files.tokens);
  commands::set_text(recipe, "data", "tags", files.tags);
  commands::set_text(recipe, "data", "text", files.text);
  commands::set_text(recipe, "data", "entities", files.entities);
  commands::set_text(recipe, "data", "comments", files.comments);
  commands::set_text(recipe, "tag", "scheme", files.scheme);
}

int run(const Arguments& given) {
  return finetune::fine_tune(given, tag::run_tag_training,
                             [&](Json& recipe) { write_files_into(recipe, given.files); });
}

}  // namespace

void add_tag_train(commands::Command tag, commands::Action& chosen) {
  auto given = std::make_shared<Arguments>();
  const commands::Command command = tag.add_subcommand(
      "train",
      "Fine-tune a BERT on tagged sentences; under mpirun, data parallel on all ranks. Leaves in "
      "--output the best model by the recipe's metric as a Hugging Face folder, and its scores on "
      "--dev");
  finetune::add_fine_tuning_options(
      command, *given,
      fmt::format("Tagged sentences: CoNLL, CoNLL-U or JSON lines ({})", commands::kPlainOrPacked),
      "The same, to evaluate on at the end of each epoch and every run.evaluate_every steps");
  add_tag_file_options(command, given->files, true);
  commands::add_recipe_options(command, given->recipe);
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::tag
