// The subcommands of `onebit squad`, one source file each.
#pragma once

#include "onebit/apps/squad/answerer.h"
#include "onebit/apps/squad/squad_config.h"
#include "onebit/training/commands/command_line.h"
#include "onebit/training/commands/key_options.h"

namespace onebit::squad {

// Declares the group `onebit squad`.
void add_squad(commands::Command program, commands::Action& chosen);
void add_squad_train(commands::Command squad, commands::Action& chosen);
void add_squad_predict(commands::Command squad, commands::Action& chosen);
void add_squad_evaluate(commands::Command squad, commands::Action& chosen);
void add_squad_ask(commands::Command squad, commands::Action& chosen);
void add_squad_windows(commands::Command squad, commands::Action& chosen);

// --max-sequence-length, --doc-stride, --max-question-length.
void add_window_options(const commands::KeyOptions& keys);
// --n-best-size, --max-answer-length, --null-score-diff-threshold, --projection, --no-projection.
void add_answer_options(const commands::KeyOptions& keys);

// The recipe of the run or checkpoint at `model` with the overrides.
SquadConfig config_of_model(const Path& model, const commands::Overrides& overrides);

}  // namespace onebit::squad
