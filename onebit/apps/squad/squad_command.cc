#include "onebit/apps/squad/squad_command.h"

#include "onebit/apps/squad/squad_config.h"

namespace onebit::squad {

void add_squad(commands::Command program, commands::Action& chosen) {
  const commands::Command squad = program.add_subcommand(
      "squad", "Answer questions about a text: fine-tune, predict, score, ask (SQuAD 1.1 and 2.0)");
  squad.require_subcommand();
  add_squad_train(squad, chosen);
  add_squad_predict(squad, chosen);
  add_squad_evaluate(squad, chosen);
  add_squad_ask(squad, chosen);
  add_squad_windows(squad, chosen);
}

void add_window_options(commands::Command command, FeatureOptions& options) {
  command
      .add_option("--max-sequence-length", options.max_sequence_length,
                  "Tokens of a window, question and special tokens included (for this and the next "
                  "options: if the model is that of a run, the default is the run's)")
      .check(commands::at_least(1))
      .capture_default_str();
  command
      .add_option("--doc-stride", options.doc_stride,
                  "Tokens from the start of a window to the start of the next")
      .check(commands::at_least(1))
      .capture_default_str();
  command
      .add_option("--max-question-length", options.max_question_length,
                  "Tokens of a question; longer ones are cut")
      .check(commands::at_least(1))
      .capture_default_str();
}

void add_answer_options(commands::Command command, DecodeOptions& options) {
  command
      .add_option("--n-best", options.n_best,
                  "Candidates kept, and starts and ends tried in each window")
      .check(commands::at_least(1))
      .capture_default_str();
  command.add_option("--max-answer-length", options.max_answer_length, "Tokens of an answer")
      .check(commands::at_least(1))
      .capture_default_str();
  command
      .add_option("--null-threshold", options.null_threshold,
                  "Version 2.0: no answer where null score - best answer's score is above this")
      .capture_default_str();
  command.add_flag_callback(
      "--projection", [&options] { options.text = AnswerText::kProjection; },
      "Find the text of an answer as the published programs do, by aligning words, instead of by "
      "token offsets");
}

void take_from_run(commands::Command command, const Path& model, SquadPredictionOptions& options) {
  const std::optional<SquadConfig> run = squad::squad_config_of_run(model);
  options.is_window_chosen = (run && run->is_length_chosen) ||
                             command.has("--max-sequence-length") || command.has("--doc-stride") ||
                             command.has("--max-question-length");
  if (!run) return;
  const auto take = [&](const char* option, auto& to, const auto& from) {
    if (!command.has(option)) to = from;
  };
  FeatureOptions& features = options.features;
  take("--max-sequence-length", features.max_sequence_length, run->features.max_sequence_length);
  take("--doc-stride", features.doc_stride, run->features.doc_stride);
  take("--max-question-length", features.max_question_length, run->features.max_question_length);
  take("--n-best", options.decode.n_best, run->decode.n_best);
  take("--max-answer-length", options.decode.max_answer_length, run->decode.max_answer_length);
  take("--null-threshold", options.decode.null_threshold, run->decode.null_threshold);
  take("--projection", options.decode.text, run->decode.text);
}

}  // namespace onebit::squad
