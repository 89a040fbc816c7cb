// The parts of `onebit squad`, one file each.
#pragma once

#include "onebit/cli/command_list.h"
#include "onebit/cli/usage.h"
#include "onebit/tasks/squad_prediction.h"

namespace onebit::cli {

void add_squad_train(CLI::App& squad, Action& chosen);
void add_squad_predict(CLI::App& squad, Action& chosen);
void add_squad_evaluate(CLI::App& squad, Action& chosen);
void add_squad_ask(CLI::App& squad, Action& chosen);
void add_squad_windows(CLI::App& squad, Action& chosen);

// --max-sequence-length, --doc-stride, --max-question-length.
void add_window_options(CLI::App& command, squad::FeatureOptions& options);
// --n-best, --max-answer-length, --null-threshold, --projection.
void add_answer_options(CLI::App& command, squad::DecodeOptions& options);

// If the model is in a run or a checkpoint, options that are not given are taken from that run.
void take_from_run(const CLI::App& command, const Path& model, tasks::PredictionOptions& options);

}  // namespace onebit::cli
