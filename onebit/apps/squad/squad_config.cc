#include "onebit/apps/squad/squad_config.h"

namespace onebit::squad {
namespace {

using Windows = std::optional<squad::WindowsWithoutAnswer>;

void read_data(Keys section, SquadConfig& config) {
  FeatureOptions& features = config.features;
  finetune::read_sequence_length(
      section, 1,
      "tokens of a window, question and special tokens included. Where this key and the two below "
      "are absent and the model has fewer positions, all three are as much smaller",
      features.max_sequence_length, config);
  section.integer("doc_stride", features.doc_stride, at_least(1),
                  "tokens from the start of a window to the start of the next");
  section.integer("max_question_length", features.max_question_length, at_least(1),
                  "tokens of a question. Longer ones are truncated");
  config.is_length_chosen =
      config.is_length_chosen || section.has("doc_stride") || section.has("max_question_length");
  section.choice("windows_without_answer", config.without_answer,
                 {{"auto", Windows()},
                  {"drop", Windows(WindowsWithoutAnswer::kDrop)},
                  {"cls", Windows(WindowsWithoutAnswer::kToCls)}},
                 "what is learned from a window without the answer. drop: nothing. cls: to point "
                 "to [CLS]. auto: cls where some question has no answer");
  finetune::read_bad_records(section, config.left_out);
  finetune::read_training_length(section, "windows of one pass in evaluation", config);
}

void read_answers(Keys section, DecodeOptions& decode) {
  section.integer("n_best_size", decode.n_best, at_least(1),
                  "candidates kept, and starts and ends tried in each window");
  section.integer("max_answer_length", decode.max_answer_length, at_least(1),
                  "tokens of an answer");
  section.number("null_score_diff_threshold", decode.null_threshold, {},
                 "version 2.0: predict no answer if its score is higher by more than this");
  section.choice(
      "text", decode.text,
      {{"offsets", AnswerText::kOffsets}, {"projection", AnswerText::kProjection}},
      "from the positions of its tokens, or by aligning words as the published programs do");
}

}  // namespace

SquadConfig read_squad_recipe(Keys& recipe) {
  SquadConfig config;
  finetune::read_fine_tuning(recipe, kSquadTask, config);
  finetune::read_classifier_dropout(recipe, config, "the checkpoint's, else 0");
  read_data(recipe.section("data", "how questions and contexts are split into windows"), config);
  read_answers(recipe.section("answers", "how answers are found"), config.decode);
  return config;
}

SquadConfig parse_squad_recipe(const Recipe& recipe) {
  return read_whole(recipe, read_squad_recipe);
}

training::RecipeFacts inspect_squad_recipe(const Recipe& recipe) {
  const SquadConfig config = parse_squad_recipe(recipe);
  const auto of_task = [config](const engine::BatchSizes&) -> Json {
    return {{"epochs", finetune::epochs_shown(config)},
            {"max_sequence_length", config.features.max_sequence_length},
            {"doc_stride", config.features.doc_stride}};
  };
  return {.engine = config.engine, .session = config.session, .of_task = of_task};
}

}  // namespace onebit::squad
