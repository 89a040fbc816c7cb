#include "onebit/apps/embed/embed_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "onebit/apps/embed/embed_task.h"
#include "onebit/ground/base/log.h"
#include "onebit/training/commands/model_options.h"
#include "onebit/training/commands/usage.h"
#include "onebit/training/finetune/fine_tuning_command.h"

namespace onebit::embed {

void add_embed(commands::Command program, commands::Action& chosen) {
  const commands::Command embed = program.add_subcommand(
      "embed", "Vectors of texts, for comparing and finding them: fine-tune, encode, evaluate");
  embed.require_subcommand();
  add_embed_train(embed, chosen);
  add_embed_encode(embed, chosen);
  add_embed_evaluate(embed, chosen);
}

void add_embed_file_options(const commands::KeyOptions& keys) {
  finetune::add_record_file_options(keys);
  keys.add("--anchor", "data.anchor");
  keys.add("--positive", "data.positive");
  const commands::Option negative = keys.add("--negative", "data.negative");
  negative.excludes(keys.add("--score", "data.score"));
  keys.add("--score-scale", "data.score_scale");
}

void add_embed_model_options(commands::Command command, const commands::KeyOptions& keys,
                             EmbedModelOptions& options) {
  command
      .add_option("--model,-m", options.model,
                  "A run of embed train, a model folder of sentence-transformers, or any BERT: a "
                  "folder, a checkpoint or a run. The recipe of a run is the default of options "
                  "that name a key. Without one the model's folder decides")
      .required();
  keys.add("--max-sequence-length", "data.max_sequence_length", "the model's");
  keys.add("--pooling", "embed.pooling");
  keys.add_flag("--normalize", "embed.normalize", "yes");
  keys.add_flag("--no-normalize", "embed.normalize", "no");
  command
      .add_option("--dimensions", options.dimensions,
                  "Keep the first N numbers of each vector, and then normalize it: for models that "
                  "are trained for it (Matryoshka). Default: as the model's folder specifies, else "
                  "all")
      .check(commands::whole_between(1, 1 << 24));
  command.add_text_callback(
      "--prompt", [&options](const std::string& text) { options.prompt = text; },
      "Text to put before every text: the name of one of the model's prompts, or the text itself, "
      "where \"\" is none (default: the model's default prompt, if it has one)");
  keys.add("--prediction-batch,--batch", "data.prediction_batch");
  commands::add_compute_option(command, options.compute);
  keys.add_set();
}

EmbedConfig EmbedModelOptions::config() const {
  return parse_embed_recipe(finetune::recipe_of_model(model, kEmbedTask, overrides.all()));
}

EncoderOptions EmbedModelOptions::encoder(const EmbedConfig& config) const {
  EncoderOptions options = {.max_sequence_length = {},
                            .pooling = config.pooling,
                            .normalize = config.normalize,
                            .dimensions = {},
                            .prompt = prompt,
                            .batch = config.prediction_batch,
                            .compute = compute};
  if (dimensions > 0) options.dimensions = dimensions;
  if (config.is_length_chosen) options.max_sequence_length = config.max_sequence_length;
  return options;
}

void report_encoder(const Encoder& encoder, const std::string& model) {
  log_info("{}: vectors of {} numbers: {}", model, encoder.dimensions(), encoder.description());
  if (!encoder.prompt().empty()) {
    log_info("before every text: \"{}\"", encoder.prompt());
  } else if (const auto names = encoder.prompt_names(); !names.empty()) {
    log_info(
        "{}: has prompts for texts ({}), and none is used: --prompt NAME puts one before every "
        "text",
        model, fmt::join(names, ", "));
  }
  if (encoder.is_described()) return;
  log_warning(
      "{}: the folder does not define how text vectors are computed, so the model may not have "
      "been trained for them; `onebit embed train --model {}` trains it",
      model, model);
}

void add_embed_train(commands::Command embed, commands::Action& chosen) {
  auto given = std::make_shared<finetune::FineTuningArguments>();
  const commands::Command command = embed.add_subcommand(
      "train",
      "Fine-tune an encoder on texts that belong together, data parallel on the ranks of onebit "
      "launch, mpirun or srun. Leaves in --output the best model by the recipe's metric as a "
      "folder that sentence-transformers opens, and its scores on --dev");
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
