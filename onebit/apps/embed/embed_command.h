// The subcommands of `onebit embed`, one source file each.
#pragma once

#include "onebit/training/commands/command_line.h"

#include <optional>
#include <string>

#include "onebit/apps/embed/example_reader.h"
#include "onebit/apps/embed/text_encoder.h"
#include "onebit/training/finetune/record_file_options.h"

namespace onebit::embed {

// Declares the group `onebit embed`.
void add_embed(commands::Command program, commands::Action& chosen);
void add_embed_train(commands::Command embed, commands::Action& chosen);
void add_embed_encode(commands::Command embed, commands::Action& chosen);
void add_embed_evaluate(commands::Command embed, commands::Action& chosen);

// How a file of examples is read, as given on the command line.
struct EmbedFileOptions : finetune::RecordFileOptions {
  std::string anchor, positive, negative, score;
  std::optional<double> score_scale;

  // Overwrites in `layout` only what was given.
  void apply(FileLayout& layout) const;
};

// Those of RecordFileOptions, --anchor, --positive, --negative, --score, --score-scale.
void add_embed_file_options(commands::Command command, EmbedFileOptions& options);

// A model, and how its vectors are computed: as in its folder, unless the command line gives
// something else.
struct EmbedModelOptions {
  std::string model, pooling = "auto";
  TextEncoderOptions encoder;

  // To be called after parsing: completes `encoder` with these settings.
  void settle();
};

// --model, --max-sequence-length, --batch, --compute, --pooling, --normalize, --no-normalize.
void add_embed_model_options(commands::Command command, EmbedModelOptions& options);

// Logs how vectors are computed, and a warning if the model's folder does not define it, since the
// model may not be trained for it.
void report_encoder(const TextEncoder& encoder, const std::string& model);

}  // namespace onebit::embed
