#include "onebit/tasks/pretraining_evaluation.h"

#include "onebit/tasks/pretraining_data.h"
#include "onebit/training/model_folder.h"

namespace onebit::tasks {

namespace {

// The section `data` of the recipe of the checkpoint that contains the model, with the overrides
// that were asked for.
PretrainingData data_of(const EvaluationTask& task, const Path& model_folder) {
  const Path state = model_folder.parent_path() / "state.json";
  Json section = Json::object();
  if (std::filesystem::exists(state)) {
    JsonReader saved(read_json(state), state.string(), "");
    section = saved.object("client_state").object("recipe").object("data").given();
  }
  if (task.sequence_length) section["sequence_length"] = *task.sequence_length;
  if (task.max_predictions) section["max_predictions_per_sequence"] = *task.max_predictions;
  const Keys keys(section, state.string(), "data");
  const PretrainingData data = parse_pretraining_data(keys);
  keys.check();
  return data;
}

}  // namespace

HeldOutResult evaluate_model(Context& context, const EvaluationTask& task,
                             comm::Communicator& communicator) {
  const Path folder = training::find_model_folder(task.model);
  const training::ModelDescription description = training::read_model_description(folder);
  const PretrainingData data = data_of(task, folder);
  require(data.pairs.sequence_length <= description.config.max_positions,
          "{}: the model has {} positions, sequence length {} was asked for", folder.string(),
          description.config.max_positions, data.pairs.sequence_length);
  params::Table table;
  model::PreTrainingModel model(description.config, table);
  table.allocate(context.device(), DType::kF32);
  training::load_values(table, folder, {.may_lack = {}, .may_ignore = kNotForPretraining});
  data::EvaluationOptions options = held_out_options(communicator, context.threads());
  options.batch = task.batch;
  options.max_samples = task.max_samples;
  options.pairs = data.pairs;
  options.masks = data.masks;
  const auto stream = open_held_out(task.data, *description.vocabulary, options);
  training::DeviceBatchBuffer buffer(context.device(), stream->bounds());
  model.plan(context, training::limits_of(stream->bounds()), {}, false);
  return evaluate_held_out(context, model, *stream, buffer, communicator);
}

}  // namespace onebit::tasks
