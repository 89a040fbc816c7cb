#include <fmt/format.h>

#include <memory>

#include "onebit/ground/base/file.h"
#include "onebit/ground/base/run_files.h"
#include "onebit/ground/metrics/page.h"
#include "onebit/program/cli/command_list.h"
#include "onebit/training/commands/output_files.h"

namespace onebit::cli {
namespace {

struct Arguments {
  std::vector<std::string> runs;
  std::string output;
};

int run(const Arguments& given) {
  std::vector<metrics::RunHistory> runs;
  std::vector<Path> inputs;
  for (const std::string& folder : given.runs) {
    runs.push_back(metrics::read_run(folder));
    inputs.push_back(Path(folder) / run_files::kMetrics);
  }
  const Path output = !given.output.empty()    ? Path(given.output)
                      : given.runs.size() == 1 ? Path(given.runs.front()) / run_files::kReport
                                               : Path(run_files::kReport);
  commands::require_separate_outputs({output}, inputs, {});
  write_file_atomically(output, metrics::html_page(runs));
  fmt::print("{}\n", output.string());
  return 0;
}

}  // namespace

void add_report(commands::Command program, commands::Action& chosen) {
  auto given = std::make_shared<Arguments>();
  const commands::Command command = program.add_subcommand(
      "report", "Curves, tables and possible problems of one or several runs, as one HTML file");
  command.add_option("runs", given->runs, "Folders of runs. Several are compared").required();
  command.add_option("-o,--output", given->output,
                     fmt::format("File to write (default: {} in the folder of the run, or in the "
                                 "current folder if several are compared)",
                                 run_files::kReport));
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::cli
