#include "onebit/tasks/pretraining_config.h"

#include <algorithm>
#include <cmath>

#include "onebit/tasks/task_list.h"

namespace onebit::tasks {
namespace {

// Room for the share of a full sequence, so that no length cuts it short. What is out of range is
// told by check().
int64_t predictions_of(double probability, int64_t sequence_length) {
  constexpr double kRounding = 1e-9;  // of the product
  const double share = std::clamp(probability, 0.0, 1.0) * static_cast<double>(sequence_length);
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(share - kRounding)));
}

}  // namespace

PretrainingData parse_pretraining_data(JsonReader section) {
  PretrainingData config;
  data::PairOptions& pairs = config.pairs;
  data::MaskOptions& masks = config.masks;
  pairs.sequence_length = section.integer("sequence_length", pairs.sequence_length);
  pairs.short_sequence_probability =
      section.number("short_sequence_probability", pairs.short_sequence_probability);
  masks.probability = section.number("masked_lm_probability", masks.probability);
  data::check(pairs);
  masks.max_predictions = section.integer("max_predictions_per_sequence",
                                          predictions_of(masks.probability, pairs.sequence_length));
  masks.whole_words = section.boolean("whole_word_masking", masks.whole_words);
  config.evaluation_batch = section.integer("evaluation_batch", config.evaluation_batch);
  config.evaluation_samples = section.integer("evaluation_samples", config.evaluation_samples);
  require(config.evaluation_batch >= 1, "{} must be at least 1", section.place("evaluation_batch"));
  require(config.evaluation_samples >= 0, "{} must not be negative; 0 means all",
          section.place("evaluation_samples"));
  section.finish();
  data::check(masks);
  return config;
}

PretrainingConfig parse_pretraining_recipe(const Json& recipe, const std::string& place,
                                           int64_t vocabulary_size) {
  JsonReader reader(recipe, place, "");
  require_task(reader, kPretrainingTask);
  PretrainingConfig config;
  config.engine = engine::parse_engine_config(reader, place);
  require(config.engine.run.steps > 0,
          "{} is {}: give the number of optimizer steps of the whole run, at least 1",
          reader.object("run").place("steps"), reader.object("run").has("steps") ? "0" : "missing");
  JsonReader model = reader.object("model");
  config.model = model::read_config(model, vocabulary_size);
  config.memory = model::read_memory_options(model);
  model.finish();
  require(config.model.vocab_size == vocabulary_size,
          "{}: `model.vocab_size` is {}, the token store's vocabulary has {} tokens; leave the key "
          "out to use the store's",
          place, config.model.vocab_size, vocabulary_size);
  config.data = parse_pretraining_data(reader.object("data"));
  require(config.data.pairs.sequence_length <= config.model.max_positions,
          "{}: `data.sequence_length` is {}, the model has {} positions "
          "(model.max_position_embeddings)",
          place, config.data.pairs.sequence_length, config.model.max_positions);
  reader.accept("comment");
  reader.finish();
  return config;
}

}  // namespace onebit::tasks
