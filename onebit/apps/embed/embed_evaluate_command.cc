#include <fmt/format.h>

#include <memory>

#include "onebit/apps/embed/embed_command.h"
#include "onebit/apps/embed/embed_config.h"
#include "onebit/apps/embed/embed_scores.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/log.h"
#include "onebit/training/commands/device_option.h"
#include "onebit/training/commands/output_files.h"
#include "onebit/training/commands/usage.h"
#include "onebit/training/finetune/fine_tuning_command.h"

namespace onebit::embed {
namespace {

struct Arguments {
  EmbedModelOptions model;
  std::string data, output;
  bool json = false;
  commands::DeviceOptions device;
};

int run(Arguments& given) {
  const EmbedConfig config = given.model.config();
  if (!given.output.empty()) {
    commands::require_separate_outputs({given.output}, {given.data}, given.model.model);
  }
  Context context = commands::make_context(given.device, 0, 1);
  Encoder encoder(context, given.model.model, given.model.encoder(config));
  const Examples examples = embed::read_examples(given.data, config.layout);
  report_encoder(encoder, given.model.model);
  if (!examples.texts.left_out.empty()) log_warning("{}", examples.texts.left_out);
  const std::vector<float> vectors = encoder.vectors(examples.texts.all);
  finetune::warn_of_truncation(examples.source(), encoder.cut(),
                               static_cast<int64_t>(examples.texts.all.size()));
  const Scores scores = embed::score(examples, vectors, context.threads());
  Json json = {{"file", given.data}};
  json.update(embed::json_of(scores));
  if (!given.output.empty()) write_file_atomically(given.output, json_text(json, 2) + "\n");
  fmt::print("{}", given.json ? json_text(json) + "\n" : embed::text_of(scores));
  return commands::kSuccess;
}

}  // namespace

void add_embed_evaluate(commands::Command embed, commands::Action& chosen) {
  auto given = std::make_shared<Arguments>();
  const commands::Command command = embed.add_subcommand(
      "evaluate",
      "Judge a model by how its cosines correlate with the scores of pairs (Spearman, Pearson), or "
      "by how anchors find their positives among all positives of the file (MRR, accuracy)");
  const commands::KeyOptions keys(command, read_embed_recipe, given->model.overrides);
  add_embed_model_options(command, keys, given->model);
  command
      .add_option("--data,-d,--input,-i", given->data,
                  fmt::format("Pairs with a score, pairs, or triplets: TSV, CSV or JSON lines ({})",
                              commands::kPlainOrPacked))
      .required();
  command.add_option("--output,-o", given->output, "Also write the figures as JSON");
  command.add_flag("--json", given->json, "Print one line of JSON instead of a table");
  finetune::add_skip_bad_records(keys);
  add_embed_file_options(keys);
  commands::add_device_options(command, given->device);
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::embed
