// The option --vocab of `onebit prepare`.
#pragma once

#include <string>

#include "onebit/data/corpus/prepare_options.h"

namespace onebit::cli {

// Sets options.vocabulary for a vocab.txt, or options.model_vocabulary for a model folder, run,
// store or tokenizer.json. Errors: those of finetune::read_model_vocabulary().
void take_vocabulary(const std::string& given, corpus::PrepareOptions& options);

}  // namespace onebit::cli
