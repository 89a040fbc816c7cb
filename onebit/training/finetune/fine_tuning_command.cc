#include "onebit/training/finetune/fine_tuning_command.h"

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/log.h"
#include "onebit/training/commands/model_options.h"
#include "onebit/training/commands/usage.h"

namespace onebit::finetune {

void add_fine_tuning_options(commands::Command command, FineTuningArguments& given,
                             const std::string& train, const std::string& dev) {
  commands::add_pretrained_model_option(command, given.model);
  command.add_option("--train", given.train, train).type_name(commands::kInput).required();
  command.add_option("--dev", given.dev, dev).type_name(commands::kInput);
}

int fine_tune(const FineTuningArguments& given, training::MakeTask make) {
  training::TaskInputs inputs = {.model = given.model, .train = {{given.train, 0.0}}, .dev = {}};
  if (!given.dev.empty()) inputs.dev.push_back({"", given.dev});
  return commands::train_on_ranks(given.recipe, make, inputs);
}

void require_one_file(const training::TaskInputs& inputs) {
  require(!inputs.model.empty(), "a fine-tuning starts from a model: give one");
  require(inputs.train.size() == 1, "a fine-tuning reads one training file, {} are given",
          inputs.train.size());
}

FineTuningOptions options_of(const training::RunOptions& run, const training::TaskInputs& inputs) {
  require_one_file(inputs);
  require(inputs.dev.size() <= 1, "this task evaluates one file during the run, {} are given",
          inputs.dev.size());
  return {run, inputs.model, inputs.train.front().first,
          inputs.dev.empty() ? Path() : inputs.dev.front().path};
}

void add_record_file_options(const commands::KeyOptions& keys) {
  keys.add("--format", "data.format");
  keys.add_flag("--header", "data.header", "yes");
  keys.add_flag("--no-header", "data.header", "no");
}

void add_skip_bad_records(const commands::KeyOptions& keys) {
  keys.add_flag("--skip-bad-records", "data.skip_bad_records", "true");
}

void warn_of_truncation(const std::string& file, int64_t cut, int64_t texts) {
  if (cut == 0) return;
  log_warning("{}: {} of {} texts were longer than the sequence length and were truncated", file,
              cut, texts);
}

}  // namespace onebit::finetune
