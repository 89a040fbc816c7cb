#include <fmt/format.h>

#include <memory>

#include "onebit/base/json.h"
#include "onebit/cli/command.h"
#include "onebit/metrics/text_table.h"
#include "onebit/tasks/inspect.h"

namespace onebit::cli {
namespace {

struct Arguments {
  std::string path;
  bool verify = false, json = false;
};

int run(const Arguments& given) {
  const auto parts = tasks::inspect(given.path, given.verify);
  if (given.json) {
    Json all = Json::object();
    for (const auto& part : parts) {
      for (const auto& [name, value] : part.rows) all[part.title][name] = value;
    }
    fmt::print("{}\n", all.dump(2));
    return 0;
  }
  for (const auto& part : parts) {
    metrics::TextTable table;
    table.add_title(part.title);
    for (const auto& [name, value] : part.rows) table.add_row({name, value});
    fmt::print("{}\n", table.text());
  }
  return 0;
}

}  // namespace

void add_inspect(CLI::App& program, Action& chosen) {
  auto given = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand(
      "inspect", "Tell what a token store, recipe, model, checkpoint or run is");
  command->add_option("path", given->path, "File or folder")->required();
  command->add_flag("--verify", given->verify, "Compare a token store with its checksums");
  command->add_flag("--json", given->json, "Print one JSON object");
  command->callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::cli
