// The options on the model of a command that fine-tunes one or uses what was fine-tuned.
#pragma once

#include <cstdint>
#include <string>

#include "onebit/cli/command_line.h"

namespace onebit::cli {

// --model, where a training begins.
void add_pretrained_model_option(Command command, std::string& model);

// --model, of a command that takes settings that are not given from the run of the model.
void add_fine_tuned_model_option(Command command, std::string& model);

// --batch, of `items` ("Sequences").
void add_batch_option(Command command, int64_t& batch, const char* items = "Sequences");

}  // namespace onebit::cli
