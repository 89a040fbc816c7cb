#include "onebit/training/finetune/fine_tuning_config.h"

#include "onebit/ground/base/config_keys.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/run_files.h"
#include "onebit/ground/recipe/keys.h"
#include "onebit/training/training/task_kind.h"

namespace onebit::finetune {
namespace {

// Lengths that depend on the model where a recipe does not give them.
constexpr const char* kLengths[] = {"max_sequence_length", "doc_stride", "max_question_length"};

Keys model_section(Keys& recipe) {
  return recipe.section("model", "the BERT encoder, where the checkpoint leaves a choice");
}

Limits dropout_limits() {
  return at_least(0).below(1);
}

}  // namespace

void read_fine_tuning(Keys& recipe, const char* task, FineTuningConfig& config) {
  training::require_task(recipe, task);
  config.engine = engine::parse_engine_config(recipe);
  config.session = training::read_session_config(recipe);
  Keys model = model_section(recipe);
  config.memory = model::read_memory_options(model);
  model.number(config_keys::kHiddenDropout, config.hidden_dropout, dropout_limits(),
               {"dropout after embeddings and sublayers", "the checkpoint's"});
  model.number(config_keys::kAttentionDropout, config.attention_dropout, dropout_limits(),
               {"dropout of attention probabilities", "the checkpoint's"});
}

void read_classifier_dropout(Keys& recipe, FineTuningConfig& config, const char* otherwise) {
  model_section(recipe).number(config_keys::kClassifierDropout, config.classifier_dropout,
                               dropout_limits(), {"dropout before the classifier", otherwise});
}

void read_bad_records(Keys& data, corpus::LeftOut& left_out) {
  bool skip = false;
  data.boolean(
      "skip_bad_records", skip,
      "leave out, and count, records that cannot be read. Without it each of them is an error");
  if (data.is_remembered("skip_bad_records")) skip = false;  // another file has its own records
  left_out = skip ? corpus::LeftOut::kBad : corpus::LeftOut::kMissing;
}

void read_sequence_length(Keys& data, int64_t least, const char* meaning, int64_t& length,
                          FineTuningConfig& config) {
  data.integer("max_sequence_length", length, at_least(static_cast<double>(least)), meaning);
  config.is_length_chosen = data.has("max_sequence_length");
}

void read_training_length(Keys& data, const char* batch_meaning, FineTuningConfig& config) {
  data.number("epochs", config.epochs, above(0),
              "passes over the training file, instead of run.steps");
  const bool has_steps = config.engine.run.steps > 0;
  data.require(!has_steps || !data.has("epochs"), "epochs",
               "and run.steps are both given; keep one (--set data.epochs=null leaves it out)");
  if (has_steps) data.leave_out("epochs");
  data.integer("prediction_batch", config.prediction_batch, at_least(1), batch_meaning);
}

Json epochs_shown(const FineTuningConfig& config) {
  return config.engine.run.steps > 0 ? Json() : Json(config.epochs);
}

training::ModelDescription with_recipe(const FineTuningConfig& config,
                                       training::ModelDescription checkpoint) {
  const std::string& place = config.engine.place;
  model::EncoderConfig& shape = checkpoint.config;
  if (config.hidden_dropout) shape.hidden_dropout = *config.hidden_dropout;
  if (config.attention_dropout) shape.attention_dropout = *config.attention_dropout;
  model::validate(shape, place + ": model");
  if (config.classifier_dropout) checkpoint.classifier.dropout = config.classifier_dropout;
  return checkpoint;
}

int64_t fitting_length(const FineTuningConfig& config, int64_t usual,
                       const training::ModelDescription& model,
                       std::vector<std::string>& decisions) {
  const int64_t positions = model.config.max_positions;
  if (usual <= positions) return usual;
  require(!config.is_length_chosen,
          "{}: `data.max_sequence_length` is {}, the model has {} positions", config.engine.place,
          usual, positions);
  // The resolved recipe then makes the same run.
  Keys data = Keys(config.engine.recipe).section("data", "");
  for (const char* name : kLengths) data.leave_out(name);
  decisions.push_back(fmt::format(
      "a sequence has at most {} tokens, the positions of the model, instead of the usual {} "
      "(data.max_sequence_length)",
      positions, usual));
  return positions;
}

std::optional<Recipe> recipe_of_run(const Path& model, const char* task) {
  std::optional<Recipe> stored = training::stored_recipe(model);
  // The model of a checkpoint lies in its folder.
  if (!stored && model.filename() == run_files::kModel) {
    stored = training::stored_recipe(model.parent_path());
  }
  const bool is_ours = stored && stored->values.is_object() &&
                       stored->values.value("task", Json(training::kDefaultTask)) == task;
  return is_ours ? std::move(stored) : std::nullopt;
}

Recipe recipe_of_model(const Path& model, const char* task,
                       const std::vector<std::string>& overrides) {
  Recipe recipe = recipe_of_run(model, task).value_or(Recipe{.place = "the command line"});
  recipe.is_of_model = true;
  apply_overrides(recipe, overrides);
  return recipe;
}

corpus::LeftOut require_none_left_out(corpus::LeftOut left_out) {
  require(
      left_out != corpus::LeftOut::kBad,
      "data.skip_bad_records: predictions have a line for every record, so that none can be left "
      "out; correct the records");
  return corpus::LeftOut::kNothing;
}

}  // namespace onebit::finetune
