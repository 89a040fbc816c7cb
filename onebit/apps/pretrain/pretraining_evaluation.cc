#include "onebit/apps/pretrain/pretraining_evaluation.h"

#include <algorithm>

#include "onebit/apps/pretrain/epoch_check.h"
#include "onebit/apps/pretrain/pretraining_data.h"
#include "onebit/apps/pretrain/pretraining_heads.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/run_files.h"
#include "onebit/training/training/model_folder.h"

namespace onebit::pretrain {

namespace {

// The section `data` of the recipe of the checkpoint that contains the model, with the requested
// overrides.
PretrainingData data_of(const PretrainingEvaluationOptions& task, const Path& model_folder,
                        const FoundHeads& heads, int64_t max_positions) {
  const Path state = model_folder.parent_path() / run_files::kState;
  Json section = Json::object();
  if (std::filesystem::exists(state)) {
    JsonReader saved(read_json(state), state.string(), "");
    section = saved.object("client_state").object("recipe").object("data").given();
  }
  if (task.sequence_length) section["sequence_length"] = *task.sequence_length;
  if (!section.contains("sequence_length")) {
    section["sequence_length"] = std::min(batches::PairOptions().sequence_length, max_positions);
  }
  if (task.max_predictions) section["max_predictions_per_sequence"] = *task.max_predictions;
  if (task.next_sentence) section["next_sentence"] = *task.next_sentence;
  if (!section.contains("next_sentence")) section["next_sentence"] = heads.next_sentence;
  const Keys keys(section, state.string(), "data");
  const PretrainingData data = parse_pretraining_data(keys);
  keys.check();
  return data;
}

}  // namespace

HeldOutResult evaluate_model(Context& context, const PretrainingEvaluationOptions& task,
                             comm::Communicator& communicator) {
  const Path folder = training::find_model_folder(task.model);
  const training::ModelDescription description = training::read_model_description(folder);
  const FoundHeads heads = heads_in(folder);
  require(heads.masked_words,
          "{}: has no masked-word head (cls.predictions), so it cannot predict words; `onebit "
          "pretrain --initialize-from {}` trains one",
          folder.string(), folder.string());
  const PretrainingData data = data_of(task, folder, heads, description.config.max_positions);
  require(heads.next_sentence || !data.pairs.next_sentence,
          "{}: has no next-sentence head (cls.seq_relationship and bert.pooler): evaluate only "
          "masked words (--no-next-sentence)",
          folder.string());
  require(data.pairs.sequence_length <= description.config.max_positions,
          "{}: the model has {} positions, sequence length {} was requested", folder.string(),
          description.config.max_positions, data.pairs.sequence_length);
  ParameterTable table;
  model::PreTrainingModel model(description.config, table, data.heads());
  const ConstantWeights weights =
      training::load_for_inference(context, table, task.compute, folder, all_present(data.heads()));
  batches::EvaluationOptions options = held_out_options(communicator, context.threads());
  options.batch = task.batch;
  options.max_samples = task.max_samples;
  options.pairs = data.pairs;
  options.masks = data.masks;
  const auto store = batches::open_store(task.data);
  const auto stream = open_held_out(store,
                                    {.what = "the model",
                                     .path = folder,
                                     .vocabulary = description.vocabulary,
                                     .casing = description.casing},
                                    options);
  warn_of_held_out(*store, *stream, options.pairs);
  training::DeviceBatchBuffer buffer(context.device(), stream->bounds());
  model.plan(context, training::limits_of(stream->bounds()), {}, false);
  return evaluate_held_out(context, model, *stream, buffer, communicator);
}

}  // namespace onebit::pretrain
