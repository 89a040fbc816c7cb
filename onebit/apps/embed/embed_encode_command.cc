#include <fmt/format.h>

#include <memory>
#include <optional>

#include "onebit/apps/embed/embed_command.h"
#include "onebit/apps/embed/encoder.h"
#include "onebit/apps/embed/vector_file.h"
#include "onebit/training/commands/device_option.h"
#include "onebit/training/commands/output_files.h"
#include "onebit/training/commands/usage.h"
#include "onebit/training/finetune/fine_tuning_command.h"

namespace onebit::embed {
namespace {

struct Arguments {
  EmbedModelOptions model;
  std::string input, output, format = "auto";
  TextLayout layout;
  commands::DeviceOptions device;
};

void read_format(Arguments& given) {
  if (given.format == "lines") given.layout.format = TextFormat::kLines;
  if (given.format == "tsv") given.layout.format = TextFormat::kTsv;
  if (given.format == "csv") given.layout.format = TextFormat::kCsv;
  if (given.format == "jsonl") given.layout.format = TextFormat::kJsonLines;
}

int run(Arguments& given) {
  read_format(given);
  const VectorFormat format = embed::vector_format_of(given.output);
  commands::require_separate_outputs({given.output}, {given.input}, given.model.model);
  Context context = commands::make_context(given.device, 0, 1);
  std::optional<EncodingProgress> progress;
  EncoderOptions options = given.model.encoder(given.model.config());
  options.encoded = [&](int64_t texts) { progress->add(texts); };
  Encoder encoder(context, given.model.model, options);
  TextReader reader(given.input, given.layout);
  VectorFile file(given.output, format, encoder.dimensions());
  report_encoder(encoder, given.model.model);
  progress.emplace();
  encoder.for_each_vector(reader, [&](std::span<const float> vector) { file.add(vector); });
  const std::string summary = progress->text();
  progress.reset();  // ends its line
  file.finish();
  finetune::warn_of_truncation(reader.name(), encoder.cut(), file.count());
  fmt::print("{}: {} vectors of {} numbers ({})\n", given.output, file.count(),
             encoder.dimensions(), summary);
  return commands::kSuccess;
}

}  // namespace

void add_embed_encode(commands::Command embed, commands::Action& chosen) {
  auto given = std::make_shared<Arguments>();
  const commands::Command command = embed.add_subcommand(
      "encode", "Write the vectors of the texts of a file of any size, in its order");
  const commands::KeyOptions keys(command, read_embed_recipe, given->model.overrides);
  add_embed_model_options(command, keys, given->model);
  command
      .add_option("--input,-i", given->input,
                  fmt::format("Texts: .txt, one per line, a column of TSV, CSV or JSON lines ({}), "
                              "or - for standard input, with --format",
                              commands::kPlainOrPacked))
      .required();
  command
      .add_option("--output,-o", given->output,
                  "vectors.npy, .safetensors (a tensor \"embeddings\") or .jsonl to write")
      .required();
  command
      .add_option("--format", given->format,
                  "Format of the input: lines (one text per line), tsv (no quotes), csv or jsonl")
      .check(commands::one_of({"auto", "lines", "tsv", "csv", "jsonl"}))
      .default_str("by file extension");
  command.add_option("--text", given->layout.column,
                     "Column of the text: its name, its number from 1, or a key of JSON lines "
                     "(default: text, sentence, or the only one)");
  command.add_flag_callback(
      "--header", [given] { given->layout.header = true; },
      "TSV and CSV begin with column names (the default, unless the column is a number)");
  command.add_flag_callback(
      "--no-header", [given] { given->layout.header = false; }, "TSV and CSV have no header line");
  commands::add_device_options(command, given->device);
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::embed
