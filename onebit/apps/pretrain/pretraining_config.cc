#include "onebit/apps/pretrain/pretraining_config.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "onebit/data/batches/masking.h"
#include "onebit/ground/base/config_keys.h"
#include "onebit/ground/base/json.h"
#include "onebit/math/model/memory_report.h"
#include "onebit/math/model/pretraining_model.h"
#include "onebit/training/training/task_kind.h"

namespace onebit::pretrain {
namespace {

// Enough predictions for the masked share of a full sequence, so that none is truncated.
int64_t predictions_of(double probability, int64_t sequence_length) {
  constexpr double kRounding = 1e-9;  // of the product
  const double share = std::clamp(probability, 0.0, 1.0) * static_cast<double>(sequence_length);
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(share - kRounding)));
}

// Called after the engine and the model were read.
void read_layer_drop(Keys& recipe, PretrainingConfig& config) {
  config.layer_drop = model::read_layer_drop(recipe);
  if (!config.layer_drop.enabled) return;
  Keys section = recipe.section("progressive_layer_drop", "");
  section.require(
      config.model.choices.norm_before, "enabled",
      "is true, and the model is post-LN: its layers end with a norm and cannot be left "
      "out; set model.pre_layer_norm to true, or this to false");
  const engine::EngineConfig& engine = config.engine;
  if (engine.run.steps == 0) return;
  const double share =
      config.drop().mean_layers(0, engine.run.steps) / static_cast<double>(config.model.layers);
  constexpr double kHardlyAny = 0.99;
  if (config.model.layers > 1 && share > kHardlyAny) {
    recipe.warn(
        "progressive_layer_drop computes {:.1f} % of all layers in {} steps, nearly all: raise "
        "gamma ({:g} would be 100 / run.steps) or lower theta",
        100 * share, engine.run.steps, 100 / static_cast<double>(engine.run.steps));
  }
  const bool by_bucket = engine.gradient_clipping > 0 && engine.run.clip == engine::Clip::kByBucket;
  if (by_bucket && engine.optimizer && engine.optimizer->compresses()) {
    recipe.warn(
        "run.clip \"by_bucket\" limits a bucket by its mean share of the norm. With "
        "progressive_layer_drop the gradients of late layers are zero in some passes and larger in "
        "others, and are clipped harder than the rest: set run.clip to \"exact\", which clips all "
        "alike");
  }
}

// How the share of masked tokens changes in a run.
void read_mask_schedule(Keys& section, batches::MaskOptions& masks) {
  constexpr const char* kSchedule = "masked_lm_schedule";
  constexpr const char* kFinal = "masked_lm_final_probability";
  std::map<std::string, double> since;
  std::string kind = "constant";
  section.weights_or_word(
      kSchedule, since, kind, {"constant", "linear"}, above(0).below(1),
      "masked_lm_probability in the whole run; linear: from it to masked_lm_final_probability; "
      "{step: share}: from these steps on, for example {\"90000\": 0.05}");
  section.number(kFinal, masks.final_probability, above(0).below(1),
                 "with \"linear\", the share at the end of the run");
  section.require((kind == "linear") == masks.final_probability.has_value(), kSchedule,
                  "\"linear\" and masked_lm_final_probability need each other: give both or none");
  for (const auto& [step, share] : since) {
    constexpr size_t kMostDigits = 15;
    const bool is_number = !step.empty() && step.size() <= kMostDigits &&
                           step.find_first_not_of("0123456789") == std::string::npos;
    section.require(is_number && (step == "0" || step.front() != '0'), kSchedule,
                    "has the step \"{}\": steps are whole numbers of at least 0", step);
    if (is_number) masks.probability_since.emplace(std::stoll(step), share);
  }
}

}  // namespace

PretrainingData parse_pretraining_data(Keys section, bool may_have_next_sentence) {
  PretrainingData config;
  batches::PairOptions& pairs = config.pairs;
  batches::MaskOptions& masks = config.masks;
  section.integer("sequence_length", pairs.sequence_length,
                  at_least(batches::kMinSequenceLength).up_to(batches::kMaxSequenceLength),
                  "tokens of a sequence, [CLS] and every [SEP] included");
  pairs.next_sentence = may_have_next_sentence;
  section.boolean("next_sentence", pairs.next_sentence,
                  {"sequences are pairs, and a head predicts whether the second part follows the "
                   "first. false: one run of text per sequence, masked words only",
                   "true for a BERT"});
  section.boolean("sequence_packing", pairs.packing,
                  "a sample is as many sequences as fit into sequence_length tokens, each of whole "
                  "sentences of one document, which attend to themselves alone");
  section.require(!pairs.packing || !pairs.next_sentence, "sequence_packing",
                  "is true, and so is next_sentence, whose pairs are not packed: set one to false");
  if (pairs.packing) pairs.short_sequence_probability = 0;
  section.number("short_sequence_probability", pairs.short_sequence_probability,
                 at_least(0).up_to(1),
                 {"share of sequences with a random shorter length", "0.1, with packing 0"});
  section.number("masked_lm_probability", masks.probability, above(0).below(1),
                 "share of the tokens to predict, at the beginning of a run and in held-out data");
  read_mask_schedule(section, masks);
  const int64_t share = predictions_of(masks.largest_probability(), pairs.sequence_length);
  masks.max_predictions = share;
  section.integer("max_predictions_per_sequence", masks.max_predictions, at_least(1),
                  {"the most tokens to predict in a sample",
                   "masked_lm_probability x sequence_length, rounded up"});
  if (masks.max_predictions < share) {
    section.note("max_predictions_per_sequence",
                 "{} of a sequence of {} tokens, where masked_lm_probability {:g} asks for {}; "
                 "without the key their number follows the length",
                 masks.max_predictions, pairs.sequence_length, masks.largest_probability(), share);
  }
  section.boolean("whole_word_masking", masks.whole_words, "mask all pieces of a word or none");
  section.integer("evaluation_batch", config.evaluation_batch, at_least(1),
                  About("held-out sequences of one pass").without_influence());
  section.integer("evaluation_samples", config.evaluation_samples, at_least(0),
                  About("held-out sequences of an evaluation, where 0 is all").without_influence());
  return config;
}

model::BatchLimits PretrainingConfig::limits(int64_t samples) const {
  return {.rows = samples * data.pairs.sequence_length,
          .sequences = samples * data.pairs.most_sequences(),
          .longest = data.pairs.sequence_length,
          .labelled = samples * batches::most_predictions(data.pairs.sequence_length, data.masks)};
}

PretrainingConfig read_pretraining_recipe(Keys& recipe, std::optional<int64_t> vocabulary_size,
                                          const model::StartingModel* start) {
  training::require_task(recipe, kPretrainingTask);
  PretrainingConfig config;
  config.engine = engine::parse_engine_config(recipe, {.progressive_layer_drop = true});
  config.session = training::read_session_config(recipe);
  recipe.section("run", "").need("steps",
                                 "give the number of optimizer steps of the whole run, at least 1");
  Keys model = recipe.section("model", "the BERT encoder");
  config.model = model::read_config(model, vocabulary_size, start);
  config.memory = model::read_memory_options(model);
  read_layer_drop(recipe, config);
  // A model's embeddings may have more rows than its vocabulary has tokens.
  model.require(start != nullptr || !vocabulary_size || config.model.vocab_size == *vocabulary_size,
                config_keys::kVocabSize,
                "is {}, the token store's vocabulary has {} tokens; leave the key out to use the "
                "store's",
                config.model.vocab_size, vocabulary_size.value_or(0));
  Keys data = recipe.section("data", "how sequences are cut from text and masked");
  config.data = parse_pretraining_data(data, config.model.may_have_next_sentence());
  config.data.masks.updates = config.engine.run.steps;
  data.require(config.data.pairs.sequence_length <= config.model.max_positions, "sequence_length",
               "is {}, the model has {} positions (model.max_position_embeddings)",
               config.data.pairs.sequence_length, config.model.max_positions);
  data.require(!config.data.pairs.next_sentence || config.model.may_have_next_sentence(),
               "next_sentence", "is true, and a {} has no head for it: set it to false",
               config.model.family);
  data.require(!config.data.pairs.next_sentence || config.model.segments >= 2, "next_sentence",
               "is true, and the model has {} token type where a pair needs 2 "
               "(model.type_vocab_size): set it to false",
               config.model.segments);
  return config;
}

void list_pretraining_keys(Keys& recipe) {
  read_pretraining_recipe(recipe, std::nullopt);
}

PretrainingConfig parse_pretraining_recipe(const Recipe& recipe,
                                           std::optional<int64_t> vocabulary_size,
                                           const model::StartingModel* start) {
  return read_whole(
      recipe, [&](Keys& keys) { return read_pretraining_recipe(keys, vocabulary_size, start); });
}

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
