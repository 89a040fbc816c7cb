#include "onebit/cluster/host_words.h"

#include <fmt/format.h>

namespace onebit::cluster {

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

}  // namespace onebit::cluster
