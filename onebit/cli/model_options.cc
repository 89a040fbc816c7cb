#include "onebit/cli/model_options.h"

#include <fmt/format.h>

#include "onebit/cli/usage.h"

namespace onebit::cli {

void add_pretrained_model_option(Command command, std::string& model) {
  command
      .add_option("--model,-m", model,
                  "Pre-trained BERT: model folder, checkpoint or run (onebit convert makes a "
                  "folder of any other checkpoint)")
      .type_name(kInput)
      .required();
}

void add_fine_tuned_model_option(Command command, std::string& model) {
  command
      .add_option("--model,-m", model,
                  "Fine-tuned model: a run or a model folder; for a run, what is not given here is "
                  "taken from its recipe")
      .required();
}

void add_batch_option(Command command, int64_t& batch, const char* items) {
  command.add_option("--batch", batch, fmt::format("{} of a batch", items))
      .check(at_least(1))
      .capture_default_str();
}

}  // namespace onebit::cli
