// The subcommands of `onebit squad`, one source file each.
#pragma once

#include "onebit/apps/squad/squad_prediction.h"
#include "onebit/training/commands/command_line.h"

namespace onebit::squad {

// Declares the group `onebit squad`.
void add_squad(commands::Command program, commands::Action& chosen);
void add_squad_train(commands::Command squad, commands::Action& chosen);
void add_squad_predict(commands::Command squad, commands::Action& chosen);
void add_squad_evaluate(commands::Command squad, commands::Action& chosen);
void add_squad_ask(commands::Command squad, commands::Action& chosen);
void add_squad_windows(commands::Command squad, commands::Action& chosen);

// --max-sequence-length, --doc-stride, --max-question-length.
void add_window_options(commands::Command command, FeatureOptions& options);
// --n-best, --max-answer-length, --null-threshold, --projection.
void add_answer_options(commands::Command command, DecodeOptions& options);

// If the model is in a run or a checkpoint, options that are not given are taken from that run.
void take_from_run(commands::Command command, const Path& model, SquadPredictionOptions& options);

}  // namespace onebit::squad
