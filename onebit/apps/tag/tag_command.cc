#include "onebit/apps/tag/tag_command.h"

#include <fmt/format.h>

#include <memory>

#include "onebit/apps/tag/tag_task.h"
#include "onebit/ground/base/log.h"
#include "onebit/training/commands/model_options.h"
#include "onebit/training/commands/usage.h"
#include "onebit/training/finetune/fine_tuning_command.h"

namespace onebit::tag {

void add_tag(commands::Command program, commands::Action& chosen) {
  const commands::Command tag = program.add_subcommand(
      "tag", "Tags of words, for example names or parts of speech: fine-tune, predict, evaluate");
  tag.require_subcommand();
  add_tag_train(tag, chosen);
  add_tag_predict(tag, chosen);
  add_tag_evaluate(tag, chosen);
}

void add_tag_file_options(const commands::KeyOptions& keys, bool with_tags) {
  keys.add("--format", "data.format");
  keys.add("--tokens", "data.tokens");
  keys.add("--text", "data.text");
  keys.add("--scheme", "tag.scheme");
  keys.add("--comments", "data.comments");
  if (!with_tags) return;
  keys.add("--tags", "data.tags");
  keys.add("--entities", "data.entities");
}

void add_tag_model_options(commands::Command command, const commands::KeyOptions& keys,
                           TagModelOptions& options) {
  commands::add_fine_tuned_model_option(command, options.model);
  keys.add("--max-sequence-length", "data.max_sequence_length",
           "the run's, or as much as another program's model reads");
  keys.add("--stride", "data.stride");
  keys.add("--prediction-batch,--batch", "data.prediction_batch");
  commands::add_compute_option(command, options.compute);
  keys.add_set();
}

TagConfig TagModelOptions::config() const {
  return parse_tag_recipe(finetune::recipe_of_model(model, kTagTask, overrides.all()));
}

TaggerOptions TagModelOptions::prediction(const TagConfig& config) const {
  TaggerOptions options = {.max_sequence_length = {},
                           .stride = config.stride,
                           .batch = config.prediction_batch,
                           .compute = compute};
  if (!config.is_length_chosen) return options;
  options.max_sequence_length = config.max_sequence_length;
  options.stride = stride_of(config.stride, config.max_sequence_length);
  return options;
}

Scheme scheme_of(const TagConfig& config, const std::vector<std::string>& labels,
                 const std::string& model) {
  if (!config.layout.scheme) return tag::scheme_of_labels(labels);
  tag::check_labels(labels, *config.layout.scheme, model);
  return *config.layout.scheme;
}

Scheme scheme_of(const TagConfig& config, const std::vector<std::string>& labels,
                 const std::string& model, const Sentences& sentences) {
  return config.layout.scheme ? scheme_of(config, labels, model)
                              : tag::scheme_of_labels(labels, sentences);
}

void report_reading(const Tagger& predictor, const std::string& source, int64_t widened,
                    const std::vector<std::string>& notes) {
  for (const std::string& note : notes) log_info("{}: {}", source, note);
  if (widened > 0) {
    log_info("{}: {} entities begin or end inside a word and were extended to whole words", source,
             widened);
  }
  if (predictor.split() > 0) {
    log_info("{}: {} sentences are longer than a sequence and were split", source,
             predictor.split());
  }
  if (predictor.cut_words() == 0) return;
  log_warning("{}: {} words have more pieces than a sequence, and the last pieces were dropped",
              source, predictor.cut_words());
}

void add_tag_train(commands::Command tag, commands::Action& chosen) {
  auto given = std::make_shared<finetune::FineTuningArguments>();
  const commands::Command command = tag.add_subcommand(
      "train",
      "Fine-tune an encoder on tagged sentences, data parallel on the ranks of onebit launch, "
      "mpirun or srun. Leaves in --output the best model by the recipe's metric as a "
      "Hugging Face folder, and its scores on --dev");
  finetune::add_fine_tuning_options(
      command, *given,
      fmt::format("Tagged sentences: CoNLL, CoNLL-U or JSON lines ({})", commands::kPlainOrPacked),
      "The same, to evaluate on at the end of each epoch and every run.evaluate_every steps");
  const commands::KeyOptions keys(command, read_tag_recipe, given->recipe.overrides);
  finetune::add_skip_bad_records(keys);
  add_tag_file_options(keys, true);
  commands::add_recipe_options(command, keys, given->recipe);
  command.callback([given, &chosen] {
    chosen = [given] { return finetune::fine_tune(*given, make_tag_task); };
  });
}

}  // namespace onebit::tag
