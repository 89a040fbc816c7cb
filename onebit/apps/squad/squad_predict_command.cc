#include <fmt/format.h>

#include <memory>

#include "onebit/apps/squad/answer_files.h"
#include "onebit/apps/squad/python_text.h"
#include "onebit/apps/squad/squad_command.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/log.h"
#include "onebit/training/commands/model_options.h"
#include "onebit/training/commands/output_files.h"
#include "onebit/training/commands/recipe_options.h"
#include "onebit/training/commands/usage.h"

namespace onebit::squad {
namespace {

struct Arguments {
  std::string model, input, output, n_best, null_odds, logits, rules = "auto";
  commands::Overrides overrides;
  std::optional<DType> compute;
  commands::DeviceOptions device;
};

// The path `given`, or the file `name` next to `output`.
Path beside(const std::string& given, const Path& output, const char* name) {
  return given.empty() ? output.parent_path() / name : Path(given);
}

// The files that will be written. Errors: a name is missing, or require_separate_outputs() rejects
// one.
struct Outputs {
  Path predictions, n_best, null_odds, logits;

  explicit Outputs(const Arguments& given)
      : predictions(given.output),
        n_best(beside(given.n_best, predictions, "nbest_predictions.json")),
        null_odds(beside(given.null_odds, predictions, "null_odds.json")),
        logits(given.logits) {
    require(predictions.has_filename(), "--output \"{}\" is not the name of a file", given.output);
    commands::require_separate_outputs({predictions, n_best, null_odds, logits}, {given.input},
                                       given.model);
  }
};

// Writes a line for each window: {"id", "window", "start", "end"}.
void write_logits(const Path& path, const Answerer::Computed& computed) {
  std::string text;
  const Features& features = *computed.features;
  for (size_t i = 0; i < features.windows().size(); ++i) {
    const size_t question = features.windows()[i].question;
    const auto values = computed.logits.of(i);
    Json start = Json::array(), end = Json::array();
    for (size_t at = 0; at < values.size(); at += 2) {
      start.push_back(static_cast<double>(values[at]));
      end.push_back(static_cast<double>(values[at + 1]));
    }
    const Json line = {{"id", features.dataset().questions[question].id},
                       {"window", i - features.first_window(question)},
                       {"start", std::move(start)},
                       {"end", std::move(end)}};
    text += squad::python_json(line, 0) + "\n";
  }
  write_file_atomically(path, text);
}

// The model's training decides, the file only for a model that does not say.
bool may_abstain(const Arguments& given, const training::ModelDescription& model,
                 const Dataset& dataset) {
  if (given.rules != "auto") return given.rules == "2.0";
  const bool chosen = model.may_be_unanswerable.value_or(squad::has_unanswerable(dataset));
  log_info("{}", squad::describe_abstaining(
                     chosen, model.may_be_unanswerable
                                 ? fmt::format("the training of {}", given.model)
                                 : fmt::format("{}, since {} does not say (--rules)", given.input,
                                               given.model)));
  return chosen;
}

void predict(const Arguments& given, const SquadConfig& config, Context& context,
             comm::Communicator& communicator) {
  const Outputs outputs(given);
  const Dataset dataset = squad::read_dataset(given.input, Use::kPredict);
  Answerer predictor(context, given.model, given.compute);
  const auto computed = predictor.compute(dataset, prediction_of(config), communicator);
  if (communicator.rank() != 0) return;
  const std::string problems = squad::problem_summary(dataset);
  if (!problems.empty()) log_warning("{}: {}", given.input, problems);
  if (!outputs.logits.empty()) write_logits(outputs.logits, computed);
  DecodeOptions decode = config.decode;
  decode.may_be_unanswerable = may_abstain(given, predictor.description(), dataset);
  const auto answers =
      squad::decode_answers(*computed.features, computed.logits, decode, context.threads());
  squad::write_answers({.predictions = outputs.predictions,
                        .n_best = outputs.n_best,
                        .null_odds = decode.may_be_unanswerable ? outputs.null_odds : Path()},
                       dataset, answers);
  fmt::print("{}: {} answers from {} windows\n", given.output, answers.size(),
             computed.features->windows().size());
}

int run(const Arguments& given) {
  SquadConfig config;
  return commands::run_on_ranks(
      given.device, [&] { config = config_of_model(given.model, given.overrides); },
      [&](Context& context, const training::Connection& connection) {
        predict(given, config, context, connection.open(config.engine.transport));
      });
}

}  // namespace

void add_squad_predict(commands::Command squad, commands::Action& chosen) {
  auto given = std::make_shared<Arguments>();
  const commands::Command command =
      squad.add_subcommand("predict", "Answer the questions of a file, under mpirun on all ranks");
  commands::add_fine_tuned_model_option(command, given->model);
  command
      .add_option("--input,-i", given->input,
                  fmt::format("SQuAD file (JSON, {})", commands::kPlainOrPacked))
      .required();
  command.add_option("--output,-o", given->output, "predictions.json to write").required();
  command.add_option(
      "--n-best-output", given->n_best,
      "File for the best candidates (default: nbest_predictions.json next to --output)");
  command.add_option("--null-odds", given->null_odds,
                     "Version 2.0: file for the scores that favour no answer (default: "
                     "null_odds.json next to --output)");
  command.add_option("--logits", given->logits,
                     "Also write the logits of every window, one JSON line each");
  command
      .add_option("--rules", given->rules,
                  "Rules of version 1.1 or 2.0 (a question may have no answer). auto: as the model "
                  "was trained, or detected from the file for a model that does not say")
      .check(commands::one_of({"auto", "1.1", "2.0"}))
      .capture_default_str();
  const commands::KeyOptions keys(command, read_squad_recipe, given->overrides);
  keys.add("--prediction-batch,--batch", "data.prediction_batch");
  commands::add_compute_option(command, given->compute);
  add_window_options(keys);
  add_answer_options(keys);
  keys.add_set();
  commands::add_device_options(command, given->device);
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::squad
