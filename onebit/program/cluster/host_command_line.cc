#include "onebit/program/cluster/host_command_line.h"

#include <fmt/format.h>

namespace onebit::cluster {

Words facts_words(const std::string& program, const HostQuestion& question) {
  Words words = {program, kDoctorCommand, kJsonOption};
  for (const std::string& path : question.inputs) {
    words.insert(words.end(), {kInputOption, path});
  }
  for (const std::string& path : question.stores) {
    words.insert(words.end(), {kStoreOption, path});
  }
  if (!question.output.empty()) words.insert(words.end(), {kRunOption, question.output});
  if (!question.interface.empty()) {
    words.insert(words.end(), {kInterfaceOption, question.interface});
  }
  return words;
}

Words rank_words(const std::string& program, const Words& training) {
  Words words = {program, kHostCommand, kRankCommand, "--", program};
  words.insert(words.end(), training.begin(), training.end());
  return words;
}

Words watch_words(const std::string& program, const HostWatchOptions& options) {
  return {program,
          kHostCommand,
          kWatchCommand,
          kLaunchOption,
          options.launch_id,
          kFolderOption,
          options.folder.string(),
          kLeaseOption,
          fmt::format("{}", options.lease_seconds)};
}

Words link_end_words(const std::string& program, const std::string& interface,
                     const std::vector<PortRange>& ranges) {
  Words words = {program, kHostCommand, kLinksCommand};
  if (!interface.empty()) words.insert(words.end(), {kInterfaceOption, interface});
  for (const PortRange& range : ranges) {
    words.insert(words.end(), {kPortsOption, fmt::format("{}-{}", range.first, range.last)});
  }
  return words;
}

}  // namespace onebit::cluster
