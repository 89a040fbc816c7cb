// The subcommands of `onebit embed`, one source file each.
#pragma once

#include <optional>
#include <string>

#include "onebit/apps/embed/embed_config.h"
#include "onebit/apps/embed/encoder.h"
#include "onebit/training/commands/command_line.h"
#include "onebit/training/commands/key_options.h"

namespace onebit::embed {

// Declares the group `onebit embed`.
void add_embed(commands::Command program, commands::Action& chosen);
void add_embed_train(commands::Command embed, commands::Action& chosen);
void add_embed_encode(commands::Command embed, commands::Action& chosen);
void add_embed_evaluate(commands::Command embed, commands::Action& chosen);

// --format, --header, --no-header, --anchor, --positive, --negative, --score, --score-scale.
void add_embed_file_options(const commands::KeyOptions& keys);

// A model, and how its vectors are computed: as in its folder, unless the command line gives
// something else.
struct EmbedModelOptions {
  std::string model;
  commands::Overrides overrides;
  std::optional<std::string> prompt;
  int64_t dimensions = 0;  // 0: the model's
  std::optional<DType> compute;

  // The recipe of the model's run with the overrides.
  EmbedConfig config() const;
  EncoderOptions encoder(const EmbedConfig& config) const;
};

// --model, --max-sequence-length, --prediction-batch, --compute, --pooling, --normalize,
// --no-normalize, --dimensions, --prompt, --set.
void add_embed_model_options(commands::Command command, const commands::KeyOptions& keys,
                             EmbedModelOptions& options);

// Logs how vectors are computed, and a warning if the model's folder does not define it, since the
// model may not be trained for it.
void report_encoder(const Encoder& encoder, const std::string& model);

}  // namespace onebit::embed
