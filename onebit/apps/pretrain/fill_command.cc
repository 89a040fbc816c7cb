#include <fmt/format.h>

#include <memory>

#include "onebit/apps/pretrain/fill_mask.h"
#include "onebit/apps/pretrain/pretrain_command.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/printable.h"
#include "onebit/training/commands/device_option.h"

namespace onebit::pretrain {
namespace {

struct Arguments {
  std::string model, text;
  int64_t top = 5;
  bool json = false;
  commands::DeviceOptions device;
};

void print_json(const std::vector<FilledMask>& masks) {
  Json all = Json::array();
  for (const auto& mask : masks) {
    Json candidates = Json::array();
    for (const auto& candidate : mask.candidates) {
      candidates.push_back({{"token", candidate.token},
                            {"text", candidate.text},
                            {"id", candidate.id},
                            {"probability", candidate.probability}});
    }
    all.push_back(std::move(candidates));
  }
  fmt::print("{}\n", json_text(all));
}

// A token of blanks alone has no text to show.
const std::string& shown(const FillCandidate& candidate) {
  return candidate.text.empty() ? candidate.token : candidate.text;
}

int run(const Arguments& given) {
  Context context = commands::make_context(given.device, 0, 1);
  MaskFiller filler(context, given.model);
  const auto masks = filler.fill(given.text, given.top);
  if (given.json) {
    print_json(masks);
    return 0;
  }
  fmt::print("{}\n", printable(given.text));
  for (size_t index = 0; index < masks.size(); ++index) {
    if (masks.size() > 1) fmt::print("mask {}\n", index + 1);
    for (const auto& candidate : masks[index].candidates) {
      fmt::print("  {:5.1f} %  {}\n", 100 * candidate.probability,
                 printable_line(shown(candidate)));
    }
  }
  return 0;
}

}  // namespace

void add_fill(commands::Command program, commands::Action& chosen) {
  auto given = std::make_shared<Arguments>();
  const commands::Command command =
      program.add_subcommand("fill", "Predict the words at [MASK] with a pre-trained model");
  command.add_option("model", given->model, "Run, checkpoint or model folder").required();
  command.add_option("text", given->text, "Text with one or more [MASK]").required();
  command.add_option("--top", given->top, "Candidates for each mask")
      .check(commands::at_least(1))
      .capture_default_str();
  command.add_flag("--json", given->json,
                   "Print one JSON array, with one array of candidates per mask");
  commands::add_device_options(command, given->device);
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::pretrain
