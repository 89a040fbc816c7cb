#include "onebit/apps/pretrain/pretraining_evaluation.h"

#include <algorithm>

#include "onebit/apps/pretrain/epoch_check.h"
#include "onebit/apps/pretrain/pretraining_config.h"
#include "onebit/apps/pretrain/pretraining_data.h"
#include "onebit/apps/pretrain/pretraining_heads.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/run_files.h"
#include "onebit/training/finetune/fine_tuning_config.h"
#include "onebit/training/training/model_folder.h"

namespace onebit::pretrain {

namespace {

// The section `data` of the recipe of the checkpoint that contains the model, with the overrides.
PretrainingData data_of(const PretrainingEvaluationOptions& task, const Path& model_folder,
                        const FoundHeads& heads, const model::BertConfig& shape) {
  const Path checkpoint = model_folder.parent_path();
  const bool is_in_run = std::filesystem::exists(checkpoint / run_files::kState);
  Recipe recipe =
      finetune::recipe_of_model(is_in_run ? checkpoint : model_folder, kPretrainingTask, {});
  Json& data = recipe.values["data"];
  if (data.is_null()) data = Json::object();
  const auto set_default = [&data](const char* key, const Json& value) {
    if (data.is_object() && !data.contains(key)) data[key] = value;
  };
  set_default("sequence_length",
              std::min(batches::PairOptions().sequence_length, shape.max_positions));
  set_default("next_sentence", heads.next_sentence);
  if (data.is_object()) data["evaluation_samples"] = 0;
  apply_overrides(recipe, task.overrides);
  const model::StartingModel start = {shape, model_folder.string()};
  return parse_pretraining_recipe(recipe, std::nullopt, &start).data;
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
  const PretrainingData data = data_of(task, folder, heads, description.config);
  require(heads.next_sentence || !data.pairs.next_sentence,
          "{}: has no next-sentence head (cls.seq_relationship and bert.pooler): evaluate only "
          "masked words (set data.next_sentence to false)",
          folder.string());
  ParameterTable table;
  model::PreTrainingModel model(description.config, table, data.heads());
  const ConstantWeights weights =
      training::load_for_inference(context, table, task.compute, folder, all_present(data.heads()));
  batches::EvaluationOptions options = held_out_options(communicator, context.threads());
  options.batch = data.evaluation_batch;
  options.max_samples = data.evaluation_samples;
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
