#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "onebit/apps/squad/squad_command.h"
#include "onebit/data/corpus/byte_stream.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/printable.h"
#include "onebit/training/commands/device_option.h"
#include "onebit/training/commands/model_options.h"

namespace onebit::squad {
namespace {

constexpr FileKind kContext = {"a context", uint64_t{256} << 20};

struct Arguments {
  std::string model, context, question, rules = "auto";
  commands::Overrides overrides;
  bool unanswerable = false;
  int64_t top = 3;
  bool json = false;
  commands::DeviceOptions device;
};

// The model's training decides. A model that does not say gives an answer.
bool may_abstain(const Arguments& given, const training::ModelDescription& model) {
  if (given.unanswerable) return true;
  if (given.rules != "auto") return given.rules == "2.0";
  if (!model.may_be_unanswerable) {
    log_info("{} does not say whether it may give no answer: --rules 1.1 is assumed", given.model);
  }
  return model.may_be_unanswerable.value_or(false);
}

int run(Arguments& given) {
  Context context = commands::make_context(given.device, 0, 1);
  Answerer predictor(context, given.model);
  AnswererOptions options = prediction_of(config_of_model(given.model, given.overrides));
  options.decode.may_be_unanswerable = may_abstain(given, predictor.description());
  DecodedAnswer answer = predictor.answer(
      {.question = given.question, .context = corpus::read_unpacked(given.context, kContext)},
      options);
  // The given answer comes first: the threshold of no answer may select another than the most
  // probable.
  std::stable_partition(answer.best.begin(), answer.best.end(),
                        [&](const auto& candidate) { return candidate.text == answer.text; });
  const size_t shown = std::min(answer.best.size(), static_cast<size_t>(given.top));
  if (given.json) {
    Json all = Json::array();
    for (size_t i = 0; i < shown; ++i) {
      all.push_back({{"text", answer.best[i].text}, {"probability", answer.best[i].probability}});
    }
    fmt::print("{}\n", json_text(all));
    return 0;
  }
  for (size_t i = 0; i < shown; ++i) {
    fmt::print("  {:5.1f} %  {}\n", 100 * answer.best[i].probability,
               answer.best[i].text.empty() ? "(no answer)" : printable(answer.best[i].text));
  }
  return 0;
}

}  // namespace

void add_squad_ask(commands::Command squad, commands::Action& chosen) {
  auto given = std::make_shared<Arguments>();
  const commands::Command command = squad.add_subcommand("ask", "Answer one question about a text");
  command.add_option("question", given->question, "The question").required();
  commands::add_fine_tuned_model_option(command, given->model);
  command.add_option("--context,-c", given->context, "File of the text, or - for standard input")
      .required();
  command.add_option("--top", given->top, "Answers to show")
      .check(commands::at_least(1))
      .capture_default_str();
  const commands::Option rules =
      command
          .add_option("--rules", given->rules,
                      "Rules of version 1.1 or 2.0 (a question may have no answer). auto: as the "
                      "model was trained, or 1.1 for a model that does not say")
          .check(commands::one_of({"auto", "1.1", "2.0"}))
          .capture_default_str();
  command.add_flag("--unanswerable", given->unanswerable, "The same as --rules 2.0")
      .excludes(rules);
  command.add_flag("--json", given->json, "Print one JSON array");
  const commands::KeyOptions keys(command, read_squad_recipe, given->overrides);
  add_window_options(keys);
  add_answer_options(keys);
  keys.add_set();
  commands::add_device_options(command, given->device);
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::squad
