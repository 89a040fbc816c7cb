#include <fmt/format.h>

#include <memory>

#include "onebit/apps/tag/prediction_file.h"
#include "onebit/apps/tag/tag_command.h"
#include "onebit/training/commands/device_option.h"
#include "onebit/training/commands/output_files.h"
#include "onebit/training/commands/usage.h"

namespace onebit::tag {
namespace {

struct Arguments {
  TagModelOptions model;
  std::string input, output;
  commands::DeviceOptions device;
};

int run(Arguments& given) {
  TagConfig config = given.model.config();
  config.layout.left_out = finetune::require_none_left_out(config.layout.left_out);
  const PredictionFormat format = tag::prediction_format_of(given.output);
  commands::require_separate_outputs({given.output}, {given.input}, given.model.model);
  Context context = commands::make_context(given.device, 0, 1);
  Tagger predictor(context, given.model.model, given.model.prediction(config));
  config.layout.added_tokens = predictor.added_tokens();
  const auto reader = tag::open_sentences(given.input, config.layout, false);
  const Scheme scheme = scheme_of(config, predictor.labels(), given.model.model);
  PredictionFile file(
      given.output,
      {.format = format, .labels = predictor.labels(), .has_entities = scheme != Scheme::kPlain});
  predictor.for_each_sentence(*reader,
                              [&](const Sentence& sentence, std::span<const float> outputs) {
                                file.add(sentence, outputs);
                              });
  file.finish();
  report_reading(predictor, reader->name(), reader->widened(), reader->notes());
  fmt::print("{}: {} sentences, {} words\n", given.output, file.sentences(), file.words());
  return commands::kSuccess;
}

}  // namespace

void add_tag_predict(commands::Command tag, commands::Action& chosen) {
  auto given = std::make_shared<Arguments>();
  const commands::Command command = tag.add_subcommand(
      "predict",
      "Tag the words of a file of any size, in its order, with probabilities and positions");
  const commands::KeyOptions keys(command, read_tag_recipe, given->model.overrides);
  add_tag_model_options(command, keys, given->model);
  command
      .add_option("--input,-i", given->input,
                  fmt::format("Sentences: CoNLL, CoNLL-U or JSON lines ({}), whose tags are not "
                              "read, or - for standard input, with --format",
                              commands::kPlainOrPacked))
      .required();
  command.add_option("--output,-o", given->output, "predictions.conll or .jsonl to write")
      .required();
  add_tag_file_options(keys, false);
  commands::add_device_options(command, given->device);
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::tag
