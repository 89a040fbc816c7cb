#include "onebit/tasks/squad_config.h"

#include "onebit/formats/bert_config_file.h"
#include "onebit/training/model_folder.h"

namespace onebit::tasks {
namespace {

void parse_data(JsonReader section, SquadConfig& config) {
  squad::FeatureOptions& features = config.features;
  features.max_sequence_length =
      section.integer("max_sequence_length", features.max_sequence_length);
  features.doc_stride = section.integer("doc_stride", features.doc_stride);
  features.max_question_length =
      section.integer("max_question_length", features.max_question_length);
  const std::string windows =
      section.choice("windows_without_answer", "auto", {"auto", "drop", "cls"});
  if (windows == "drop") config.without_answer = squad::WindowsWithoutAnswer::kDrop;
  if (windows == "cls") config.without_answer = squad::WindowsWithoutAnswer::kToCls;
  require(!section.has("epochs") || config.engine.run.steps == 0,
          "{}: give it or run.steps, not both; --set data.epochs=null leaves it out",
          section.place("epochs"));
  if (config.engine.run.steps == 0) config.epochs = section.number("epochs", config.epochs);
  require(config.epochs > 0, "{} must be above 0", section.place("epochs"));
  config.prediction_batch = section.integer("prediction_batch", config.prediction_batch);
  require(config.prediction_batch >= 1, "{} must be at least 1", section.place("prediction_batch"));
  section.finish();
}

void parse_answers(JsonReader section, squad::DecodeOptions& decode) {
  decode.n_best = section.integer("n_best_size", decode.n_best);
  decode.max_answer_length = section.integer("max_answer_length", decode.max_answer_length);
  decode.null_threshold = section.number("null_score_diff_threshold", decode.null_threshold);
  const std::string text = section.choice("text", "offsets", {"offsets", "projection"});
  if (text == "projection") decode.text = squad::AnswerText::kProjection;
  require(decode.n_best >= 1, "{} must be at least 1", section.place("n_best_size"));
  require(decode.max_answer_length >= 1, "{} must be at least 1",
          section.place("max_answer_length"));
  section.finish();
}

std::optional<double> read_dropout(JsonReader& section, const char* key) {
  if (!section.has(key)) return std::nullopt;
  return section.number(key, 0);
}

// Recipes of older runs may not name their task; then the model does.
bool was_squad_run(const Path& model, const Json& recipe) {
  if (!recipe.is_object()) return false;
  if (recipe.contains("task")) return recipe.at("task") == kSquadTask;
  const auto folder = training::model_folder_in(model);
  return folder && formats::read_bert_config(*folder / "config.json").architecture ==
                       "BertForQuestionAnswering";
}

}  // namespace

SquadConfig parse_squad_recipe(const Json& recipe, const std::string& place) {
  JsonReader reader(recipe, place, "");
  require_task(reader, kSquadTask);
  SquadConfig config;
  config.engine = engine::parse_engine_config(reader, place);
  require(config.engine.run.steps > 0 || !reader.object("run").has("steps"),
          "{} is 0; it must be at least 1, or left out: then data.epochs decides",
          reader.object("run").place("steps"));
  JsonReader model = reader.object("model");
  config.memory = model::read_memory_options(model);
  config.hidden_dropout = read_dropout(model, "hidden_dropout_prob");
  config.attention_dropout = read_dropout(model, "attention_probs_dropout_prob");
  model.finish();
  parse_data(reader.object("data"), config);
  parse_answers(reader.object("answers"), config.decode);
  reader.accept("comment");
  reader.finish();
  return config;
}

RecipeFacts inspect_squad_recipe(const Json& recipe, const std::string& place) {
  const SquadConfig config = parse_squad_recipe(recipe, place);
  const auto of_task = [config](const engine::BatchSizes&) -> Json {
    return {{"epochs", config.engine.run.steps > 0 ? Json() : Json(config.epochs)},
            {"max_sequence_length", config.features.max_sequence_length},
            {"doc_stride", config.features.doc_stride}};
  };
  return {.engine = config.engine, .of_task = of_task};
}

std::optional<SquadConfig> squad_config_of_run(const Path& model) {
  const Path of_run = model / "recipe.json", of_checkpoint = model / "state.json";
  Json recipe;
  std::string place = of_run.string();
  if (std::filesystem::exists(of_run)) {
    recipe = read_json(of_run);
  } else if (std::filesystem::exists(of_checkpoint)) {
    place = of_checkpoint.string();
    recipe = read_json(of_checkpoint).value("/client_state/recipe"_json_pointer, Json());
  }
  // Another task's model fails when it is opened: it has no answers.
  if (!was_squad_run(model, recipe)) return std::nullopt;
  return parse_squad_recipe(recipe, place);
}

model::BertConfig squad_model(const SquadConfig& config, model::BertConfig checkpoint) {
  if (config.hidden_dropout) checkpoint.hidden_dropout = *config.hidden_dropout;
  if (config.attention_dropout) checkpoint.attention_dropout = *config.attention_dropout;
  model::validate(checkpoint, config.engine.place + ": model");
  require(config.features.max_sequence_length <= checkpoint.max_positions,
          "{}: `data.max_sequence_length` is {}, the model has {} positions", config.engine.place,
          config.features.max_sequence_length, checkpoint.max_positions);
  return checkpoint;
}

}  // namespace onebit::tasks
