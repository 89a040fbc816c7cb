#include "onebit/apps/embed/embed_command.h"

#include <fmt/ranges.h>

#include "onebit/ground/base/log.h"
#include "onebit/training/commands/model_options.h"

namespace onebit::embed {
void add_embed(commands::Command program, commands::Action& chosen) {
  const commands::Command embed = program.add_subcommand(
      "embed", "Vectors of texts, for comparing and finding them: fine-tune, encode, evaluate");
  embed.require_subcommand();
  add_embed_train(embed, chosen);
  add_embed_encode(embed, chosen);
  add_embed_evaluate(embed, chosen);
}

void add_embed_file_options(commands::Command command, EmbedFileOptions& options) {
  finetune::add_record_file_options(command, options);
  command.add_option("--anchor", options.anchor,
                     "Column of the first text: its name, its number from 1, or a key of JSON "
                     "lines; default: anchor, query, question, sentence1 or text");
  command.add_option("--positive", options.positive,
                     "Column of the text that belongs to it, or is compared with it; default: "
                     "positive, answer, sentence2 or text_pair");
  const commands::Option negative = command.add_option(
      "--negative", options.negative,
      "Column of a text that does not belong to the first; default: negative, if present");
  const commands::Option score = command.add_option(
      "--score", options.score,
      "Column of the similarity of the two texts; default: score or similarity, if present");
  negative.excludes(score);
  command
      .add_option(
          "--score-scale", options.score_scale,
          "The score of texts with the same meaning (5 in STS-B): scores are divided by it; "
          "default: the run's, else 1")
      .check(commands::above_zero());
}

void EmbedFileOptions::apply(FileLayout& layout) const {
  Columns& columns = layout.columns;
  // If the command line names columns, it names all of them: those of a recipe do not apply.
  if (!anchor.empty() || !positive.empty()) columns = {};
  finetune::replace_if_given(columns.anchor, anchor);
  finetune::replace_if_given(columns.positive, positive);
  if (!negative.empty() || !score.empty()) {
    columns.negative = negative;
    columns.score = score;
  }
  if (header) columns.header = header;
  if (score_scale) layout.score_scale = *score_scale;
  if (const auto chosen = chosen_format()) layout.format = chosen;
}

void add_embed_model_options(commands::Command command, EmbedModelOptions& options) {
  command
      .add_option("--model,-m", options.model,
                  "A run of embed train, a model folder of sentence-transformers, or any BERT: a "
                  "folder, a checkpoint or a run")
      .required();
  command
      .add_option("--max-sequence-length", options.encoder.max_sequence_length,
                  "Tokens of a text, special ones included; longer texts are cut; default: the "
                  "model's, else 128")
      .check(commands::at_least(3));
  command
      .add_option("--pooling", options.pooling,
                  "Pooling of the last hidden states: their mean, or that of [CLS]")
      .check(commands::one_of({"auto", "mean", "cls"}))
      .default_str("the model's, else mean");
  command.add_flag_callback(
      "--normalize", [&options] { options.encoder.normalize = true; },
      "Give vectors length 1; default: as in the model, otherwise off");
  command.add_flag_callback(
      "--no-normalize", [&options] { options.encoder.normalize = false; },
      "Keep the length of vectors");
  command.add_option("--prompt", options.encoder.prompt,
                     "Put before every text: the name of one of the model's prompts, or the text "
                     "itself; default: the model's default prompt, if it has one");
  commands::add_batch_option(command, options.encoder.batch, "Texts");
  commands::add_compute_option(command, options.encoder.compute);
}

void EmbedModelOptions::settle() {
  if (pooling == "mean") encoder.pooling = Pooling::kMean;
  if (pooling == "cls") encoder.pooling = Pooling::kFirst;
}

void report_encoder(const TextEncoder& encoder, const std::string& model) {
  log_info("{}: vectors of {} numbers: {}", model, encoder.hidden(), encoder.description());
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

}  // namespace onebit::embed
