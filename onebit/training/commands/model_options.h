// Model options of commands that fine-tune a model or use a fine-tuned one.
#pragma once

#include <optional>
#include <string>

#include "onebit/ground/base/dtype.h"
#include "onebit/training/commands/command_line.h"

namespace onebit::commands {

// --model, the starting point of a training run.
void add_pretrained_model_option(Command command, std::string& model);

// --model, of a command that takes settings that are not given from the model's run.
void add_fine_tuned_model_option(Command command, std::string& model);

// --compute, of a command that uses a model. Absent for "auto", the default.
void add_compute_option(Command command, std::optional<DType>& compute);

}  // namespace onebit::commands
