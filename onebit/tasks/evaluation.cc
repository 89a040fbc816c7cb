#include "onebit/tasks/evaluation.h"

#include "onebit/tasks/model_folder.h"
#include "onebit/tasks/pretraining_data.h"

namespace onebit::tasks {

HeldOutResult evaluate_model(Context& context, const EvaluationTask& task,
                             comm::Communicator& communicator) {
  const Path folder = find_model_folder(task.model);
  const ModelDescription description = read_model_description(folder);
  require(task.sequence_length <= description.config.max_positions,
          "{}: the model has {} positions, sequence length {} was asked for", folder.string(),
          description.config.max_positions, task.sequence_length);
  params::Table table;
  model::PreTrainingModel model(description.config, table);
  table.allocate(context.device(), DType::kF32);
  load_values(table, folder, {.may_lack = {}, .may_ignore = {"qa_outputs.", "classifier."}});
  data::EvaluationOptions options = held_out_options(communicator, context.threads());
  options.batch = task.batch;
  options.max_samples = task.max_samples;
  options.pairs.sequence_length = task.sequence_length;
  const auto stream = open_held_out(task.data, *description.vocabulary, options);
  DeviceBatchBuffer buffer(context.device(), stream->bounds());
  model.plan(context, limits_of(stream->bounds()), {}, false);
  return evaluate_held_out(context, model, *stream, buffer, communicator);
}

}  // namespace onebit::tasks
