// The parts of `onebit embed`, one file each.
#pragma once

#include <optional>
#include <string>

#include "onebit/cli/command_list.h"
#include "onebit/embed/example_reader.h"
#include "onebit/tasks/text_encoder.h"

namespace onebit::cli {

void add_embed_train(Command embed, Action& chosen);
void add_embed_encode(Command embed, Action& chosen);
void add_embed_evaluate(Command embed, Action& chosen);

// How a file of examples is read, as the command line says it.
struct EmbedFileOptions {
  std::string format = "auto", anchor, positive, negative, score;
  std::optional<double> score_scale;
  std::optional<bool> header;

  // Overwrites in `layout` only what was given.
  void apply(embed::FileLayout& layout) const;
};

// --format, --anchor, --positive, --negative, --score, --score-scale, --header, --no-header.
void add_embed_file_options(Command command, EmbedFileOptions& options);

// --header, --no-header.
void add_header_flags(Command command, std::optional<bool>& header);

// A model, and how its vectors are made: as its folder says, and the command line.
struct EmbedModelOptions {
  std::string model, pooling = "auto";
  tasks::TextEncoderOptions encoder;

  // After parsing: `encoder` with all of it.
  void settle();
};

// --model, --max-sequence-length, --batch, --pooling, --normalize, --no-normalize.
void add_embed_model_options(Command command, EmbedModelOptions& options);

// Says how vectors are made, and of a model whose folder does not say it, that it may not be meant
// for it.
void report_encoder(const tasks::TextEncoder& encoder, const std::string& model);
// Says how many of `texts` texts of `source` were cut.
void report_cut(const tasks::TextEncoder& encoder, const std::string& source, int64_t texts);

}  // namespace onebit::cli
