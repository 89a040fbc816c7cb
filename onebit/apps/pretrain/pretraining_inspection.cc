#include "onebit/apps/pretrain/pretraining_inspection.h"

#include <algorithm>
#include <limits>

#include "onebit/apps/pretrain/pretraining_config.h"
#include "onebit/ground/base/json.h"
#include "onebit/math/model/memory_report.h"
#include "onebit/math/model/pretraining_model.h"

namespace onebit::pretrain {
namespace {

const std::pair<const char*, model::MemoryOptions> kMemoryChoices[] = {
    {"no option", {}},
    {"gelu_checkpoint", {.gelu_checkpoint = true}},
    {"normalize_invertible", {.normalize_invertible = true}},
    {"both", {.gelu_checkpoint = true, .normalize_invertible = true}},
    {"full_recomputation", {.full_recomputation = true}},
};

// The memory without the optimizer.
auto memory_of(const PretrainingConfig& config, const model::MemoryOptions& options,
               int64_t micro_batch) {
  return model::memory_report(config.model, config.limits(micro_batch), options,
                              config.engine.compute, config.data.heads());
}

// The memory with each memory option, at the recipe's micro-batch, without the optimizer.
Json inspect_memory(const PretrainingConfig& config, int64_t micro_batch) {
  Json list = Json::array();
  for (const auto& [name, options] : kMemoryChoices) {
    const auto rows = memory_of(config, options, micro_batch);
    Json one = {{"name", name}, {"total_bytes", model::total_bytes(rows)}};
    for (const auto& row : rows) {
      std::string key = row.name + "_bytes";
      std::replace(key.begin(), key.end(), ' ', '_');
      one[key] = row.bytes;
    }
    list.push_back(std::move(one));
  }
  return list;
}

int64_t least_memory(const PretrainingConfig& config, int64_t micro_batch, int ranks) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const auto& [name, options] : kMemoryChoices) {
    least = std::min(least, model::total_bytes(memory_of(config, options, micro_batch)));
  }
  ParameterTable table;
  const model::PreTrainingModel model(config.model, table, config.data.heads());
  const optim::RunFacts run{.bucket_bytes = config.engine.run.bucket_bytes};
  return least + config.engine.optimizer->state_bytes(table, ranks, run);
}

// The bytes of f32 values without the vocabulary's, whose size depends on the data.
int64_t least_model_file(const PretrainingConfig& config) {
  model::EncoderConfig least = config.model;
  least.vocab_size = 1;
  ParameterTable table;
  const model::PreTrainingModel model(least, table, config.data.heads());
  return table.parameter_count() * static_cast<int64_t>(sizeof(float));
}

}  // namespace

Json model_sizes(const model::EncoderConfig& config, model::PreTrainingHeads heads) {
  ParameterTable table;
  const model::PreTrainingModel model(config, table, heads);
  return {{"layers", config.layers},
          {"hidden_size", config.hidden_size},
          {"heads", config.heads},
          {"intermediate_size", config.intermediate_size},
          {"max_positions", config.max_positions},
          {"vocab_size", config.vocab_size},
          {"pre_layer_norm", config.choices.norm_before},
          {"parameters", table.parameter_count()}};
}

training::RecipeFacts inspect_pretraining_recipe(const Recipe& recipe) {
  const PretrainingConfig config = parse_pretraining_recipe(recipe, std::nullopt);
  const auto of_task = [config](const engine::BatchSizes& batch) -> Json {
    const int64_t length = config.data.pairs.sequence_length;
    return {{"sequence_length", length},
            {"gigaflop_a_full_sequence",
             1e-9 * model::training_flops(config.model, length, config.data.masks.max_predictions)},
            {"model", model_sizes(config.model, config.data.heads())},
            {"memory_without_optimizer", inspect_memory(config, batch.micro)}};
  };
  const auto least_bytes = [config](const engine::BatchSizes& batch, int ranks) {
    return least_memory(config, batch.micro, ranks);
  };
  return {.engine = config.engine,
          .session = config.session,
          .of_task = of_task,
          .least_bytes = least_bytes,
          .model_file_bytes = least_model_file(config)};
}

}  // namespace onebit::pretrain
