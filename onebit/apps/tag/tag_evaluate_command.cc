#include <fmt/format.h>

#include <memory>

#include "onebit/apps/tag/tag_command.h"
#include "onebit/apps/tag/tag_scores.h"
#include "onebit/apps/tag/tag_set.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/log.h"
#include "onebit/training/commands/device_option.h"
#include "onebit/training/commands/output_files.h"
#include "onebit/training/commands/usage.h"
#include "onebit/training/finetune/fine_tuning_command.h"

namespace onebit::tag {
namespace {

struct Arguments {
  TagModelOptions model;
  std::string data, output;
  bool json = false;
  commands::DeviceOptions device;
};

int run(Arguments& given) {
  TagConfig config = given.model.config();
  if (!given.output.empty()) {
    commands::require_separate_outputs({given.output}, {given.data}, given.model.model);
  }
  Context context = commands::make_context(given.device, 0, 1);
  Tagger predictor(context, given.model.model, given.model.prediction(config));
  config.layout.added_tokens = predictor.added_tokens();
  config.layout.tag_names = predictor.labels();
  const Sentences sentences = tag::read_sentences(given.data, config.layout);
  const Scheme scheme = scheme_of(config, predictor.labels(), given.model.model, sentences);
  const EvaluationTargets targets =
      TagSet(predictor.labels())
          .evaluation_targets(sentences, scheme,
                              "tags of entities in another scheme are rewritten by tag.scheme");
  const std::string unknown_tags = targets.warning(sentences.source);
  if (!unknown_tags.empty()) log_warning("{}", unknown_tags);
  const std::vector<float> outputs = predictor.outputs(sentences.all);
  report_reading(predictor, sentences.source, sentences.widened, sentences.notes);
  const Scores scores = tag::score({.sentences = sentences,
                                    .targets = targets.targets,
                                    .labels = predictor.labels(),
                                    .outputs = outputs},
                                   scheme);
  Json json = {{"file", given.data}};
  json.update(tag::json_of(scores));
  if (!given.output.empty()) write_file_atomically(given.output, json_text(json, 2) + "\n");
  fmt::print("{}", given.json ? json_text(json) + "\n" : tag::text_of(scores));
  return commands::kSuccess;
}

}  // namespace

void add_tag_evaluate(commands::Command tag, commands::Action& chosen) {
  auto given = std::make_shared<Arguments>();
  const commands::Command command = tag.add_subcommand(
      "evaluate",
      "Judge a model on tagged sentences: precision, recall and F1 of entities, accuracy");
  const commands::KeyOptions keys(command, read_tag_recipe, given->model.overrides);
  add_tag_model_options(command, keys, given->model);
  command
      .add_option("--data,-d", given->data,
                  fmt::format("Tagged sentences: CoNLL, CoNLL-U or JSON lines ({})",
                              commands::kPlainOrPacked))
      .required();
  command.add_option("--output,-o", given->output, "Also write the figures as JSON");
  command.add_flag("--json", given->json, "Print one line of JSON instead of tables");
  finetune::add_skip_bad_records(keys);
  add_tag_file_options(keys, true);
  commands::add_device_options(command, given->device);
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::tag
