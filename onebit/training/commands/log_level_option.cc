#include "onebit/training/commands/log_level_option.h"

#include <map>
#include <string>

#include "onebit/ground/base/log.h"

namespace onebit::commands {
namespace {

const std::map<std::string, LogLevel> kLogLevels{{"debug", LogLevel::kDebug},
                                                 {"info", LogLevel::kInfo},
                                                 {"warning", LogLevel::kWarning},
                                                 {"error", LogLevel::kError}};

}  // namespace

void add_log_level(Command command) {
  command
      .add_text_callback(
          "--log-level", [](const std::string& name) { set_log_level(kLogLevels.at(name)); },
          "Lines of the log to show: debug, info, warning or error")
      .check(one_of({"debug", "info", "warning", "error"}))
      .default_str("info");
  for (const Command one : command.subcommands()) add_log_level(one);
}

}  // namespace onebit::commands
