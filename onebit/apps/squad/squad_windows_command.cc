#include <fmt/format.h>

#include <memory>

#include "onebit/apps/squad/squad_command.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/parallel_for.h"
#include "onebit/training/commands/usage.h"
#include "onebit/training/finetune/encoded_examples.h"

namespace onebit::squad {
namespace {

struct Arguments {
  std::string model, input;
  commands::Overrides overrides;
  bool training = false;
};

// {"id", "window", "tokens", "max_context", "label"} of one window.
Json line_of(const Features& features, size_t index, batches::Batch& rows) {
  const Window& window = features.windows()[index];
  rows.clear();
  features.append(window, 0, rows);
  std::string contexts;
  for (int64_t at = 0; at < features.length(window); ++at) {
    contexts += features.has_max_context(window, at) ? '1' : '0';
  }
  Json line = {{"id", features.dataset().questions[window.question].id},
               {"window", index - features.first_window(window.question)},
               {"tokens", rows.tokens},
               {"max_context", contexts}};
  if (features.options().use == Use::kTrain) {
    line["label"] = Json::array({window.start, window.end});
  }
  return line;
}

int run(const Arguments& given) {
  const training::ModelDescription model =
      training::read_model_description(training::find_model_folder(given.model));
  finetune::warn_of_pairs_without_segments(model, given.model);
  FeatureOptions options = config_of_model(given.model, given.overrides).features;
  options.use = given.training ? Use::kTrain : Use::kPredict;
  options.without_answer = WindowsWithoutAnswer::kToCls;
  options.threads = available_threads();
  const Dataset dataset = squad::read_dataset(given.input, options.use);
  const std::string problems = squad::problem_summary(dataset);
  if (!problems.empty()) log_warning("{}: {}", given.input, problems);
  const Features features(dataset, model.vocabulary, model.casing, options);
  batches::Batch rows;
  for (size_t i = 0; i < features.windows().size(); ++i) {
    fmt::print("{}\n", json_text(line_of(features, i, rows)));
  }
  return 0;
}

}  // namespace

void add_squad_windows(commands::Command squad, commands::Action& chosen) {
  auto given = std::make_shared<Arguments>();
  const commands::Command command = squad.add_subcommand(
      "windows", "Print the input of the model: one JSON line for each window of each question");
  command
      .add_option("input", given->input,
                  fmt::format("SQuAD file (JSON, {})", commands::kPlainOrPacked))
      .required();
  command
      .add_option("--model,-m", given->model,
                  "Model folder or run: its vocabulary and casing, and the sizes of a run")
      .required();
  command.add_flag(
      "--training", given->training,
      "Also print the answer's first and last position, 0 and 0 where it is not inside");
  const commands::KeyOptions keys(command, read_squad_recipe, given->overrides);
  add_window_options(keys);
  keys.add_set();
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::squad
