#include <fmt/format.h>

#include <memory>

#include "onebit/ground/base/json.h"
#include "onebit/program/cli/command_list.h"
#include "onebit/program/inspect/inspect.h"

namespace onebit::cli {
namespace {

struct Arguments {
  std::string path;
  bool verify = false, statistics = false, json = false;
};

int run(const Arguments& given) {
  const Json inspected =
      inspect::inspect(given.path, {.verify = given.verify, .statistics = given.statistics});
  if (given.json) {
    fmt::print("{}\n", json_text(inspected, 2));
  } else {
    fmt::print("{}", inspect::inspection_text(inspected));
  }
  return 0;
}

}  // namespace

void add_inspect(commands::Command program, commands::Action& chosen) {
  auto given = std::make_shared<Arguments>();
  const commands::Command command =
      program.add_subcommand("inspect", "Describe a store, recipe, model, checkpoint or run");
  command.add_option("path", given->path, "File or folder").required();
  command.add_flag("--verify", given->verify,
                   "Compare a store, a model, a checkpoint or all of a run with its checksums");
  command.add_flag(
      "--statistics", given->statistics,
      "Read all of a store: unknown tokens, lengths of sentences and documents, or of samples");
  command.add_flag("--json", given->json,
                   "Print one JSON object. Its key kind is token_store, sample_store, recipe, "
                   "model, checkpoint or run, and docs/inspect.md lists the others");
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::cli
