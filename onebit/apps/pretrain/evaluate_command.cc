#include <fmt/format.h>

#include <memory>
#include <optional>

#include "onebit/apps/pretrain/pretrain_command.h"
#include "onebit/apps/pretrain/pretraining_evaluation.h"
#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/ground/base/json.h"
#include "onebit/training/commands/device_option.h"
#include "onebit/training/commands/model_options.h"

namespace onebit::pretrain {
namespace {

struct Arguments {
  std::string model, data;
  std::optional<int64_t> sequence_length, max_predictions;
  int64_t batch = 32, samples = 0;
  std::optional<DType> compute;
  bool json = false, no_next_sentence = false;
  commands::DeviceOptions device;
};

int run(const Arguments& given) {
  const auto communicator = comm::make_single_rank();
  Context context = commands::make_context(given.device, 0, 1);
  const HeldOutResult result = pretrain::evaluate_model(
      context,
      {.model = given.model,
       .data = given.data,
       .sequence_length = given.sequence_length,
       .max_predictions = given.max_predictions,
       .next_sentence = given.no_next_sentence ? std::optional(false) : std::nullopt,
       .batch = given.batch,
       .compute = given.compute,
       .max_samples = given.samples},
      *communicator);
  if (given.json) {
    Json json = {{"samples", result.samples},
                 {"masked", result.masked},
                 {"loss", result.loss()},
                 {"mlm_loss", result.mlm_loss},
                 {"mlm_accuracy", result.mlm_accuracy}};
    if (result.next_sentence) {
      json["nsp_loss"] = result.nsp_loss;
      json["nsp_accuracy"] = result.nsp_accuracy;
    }
    json["seconds"] = result.seconds;
    fmt::print("{}\n", json_text(json));
    return 0;
  }
  fmt::print("samples       {}\nmasked words  {}\n", result.samples, result.masked);
  fmt::print("MLM loss      {:.4f}   accuracy {:.2f} %\n", result.mlm_loss,
             100 * result.mlm_accuracy);
  if (!result.next_sentence) return 0;
  fmt::print("NSP loss      {:.4f}   accuracy {:.2f} %\n", result.nsp_loss,
             100 * result.nsp_accuracy);
  return 0;
}

}  // namespace

void add_evaluate(commands::Command program, commands::Action& chosen) {
  auto given = std::make_shared<Arguments>();
  const commands::Command command =
      program.add_subcommand("evaluate", "Held-out masked-word and next-sentence loss of a model");
  command.add_option("model", given->model, "Run, checkpoint or model folder").required();
  command.add_option("--data,-d", given->data, "Store of held-out text").required();
  command
      .add_option(
          "--sequence-length", given->sequence_length,
          "Tokens of a sequence; default: as in the run that made the model, otherwise 128, or all "
          "positions of a model that has fewer")
      .check(commands::at_least(1));
  command
      .add_option(
          "--max-predictions", given->max_predictions,
          "Most masked words per sequence; default: as in the run, otherwise the share that a "
          "recipe masks of a full sequence")
      .check(commands::at_least(1));
  commands::add_batch_option(command, given->batch);
  commands::add_compute_option(command, given->compute);
  command.add_option("--samples", given->samples, "Sequences to evaluate; 0: all")
      .check(commands::at_least(0))
      .capture_default_str();
  command.add_flag("--no-next-sentence", given->no_next_sentence,
                   "Only masked words, one contiguous text per sequence; default: as in the run, "
                   "otherwise by whether the model has the head");
  command.add_flag("--json", given->json, "Print one JSON object");
  commands::add_device_options(command, given->device);
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::pretrain
