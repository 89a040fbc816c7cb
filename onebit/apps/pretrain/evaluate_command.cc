#include <fmt/format.h>

#include <memory>
#include <optional>

#include "onebit/apps/pretrain/pretrain_command.h"
#include "onebit/apps/pretrain/pretraining_config.h"
#include "onebit/apps/pretrain/pretraining_evaluation.h"
#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/ground/base/json.h"
#include "onebit/training/commands/device_option.h"
#include "onebit/training/commands/key_options.h"
#include "onebit/training/commands/model_options.h"

namespace onebit::pretrain {
namespace {

struct Arguments {
  std::string model, data;
  commands::Overrides overrides;
  std::optional<DType> compute;
  bool json = false;
  commands::DeviceOptions device;
};

int run(const Arguments& given) {
  const auto communicator = comm::make_single_rank();
  Context context = commands::make_context(given.device, 0, 1);
  const HeldOutResult result = pretrain::evaluate_model(context,
                                                        {.model = given.model,
                                                         .data = given.data,
                                                         .overrides = given.overrides.all(),
                                                         .compute = given.compute},
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
  const commands::KeyOptions keys(command, list_pretraining_keys, given->overrides);
  keys.add("--sequence-length", "data.sequence_length",
           "128, or all positions of a model that has fewer");
  keys.add("--max-predictions-per-sequence,--max-predictions", "data.max_predictions_per_sequence");
  keys.add("--evaluation-batch,--batch", "data.evaluation_batch");
  commands::add_compute_option(command, given->compute);
  keys.add("--evaluation-samples,--samples", "data.evaluation_samples", "all");
  keys.add_flag("--no-next-sentence", "data.next_sentence", "false");
  keys.add_set();
  command.add_flag("--json", given->json, "Print one JSON object");
  commands::add_device_options(command, given->device);
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::pretrain
