#include "onebit/program/cluster/link_check.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "onebit/ground/base/file.h"
#include "onebit/program/cluster/link_end.h"
#include "tests/base/temporary_folder.h"

namespace onebit::cluster {
namespace {

// An agent whose hosts need `seconds` to try the others. `trying` has a file for each that does so
// at the moment, and `counts` their numbers.
Agent agent_of(const Path& folder, const std::string& seconds) {
  const LinkReply ready = {
      .kind = LinkReply::Kind::kReady,
      .place = {.token = "0123456789abcdef", .ports = {1024}, .addresses = {"192.0.2.1"}}};
  const std::string text = fmt::format(
      "#!/bin/sh\ncd {}\necho '{}'\nwhile read -r line; do\n  [ \"$line\" = '{}' ] || continue\n"
      "  touch trying/$1; ls trying | wc -l >> counts; sleep {}; rm trying/$1\n  echo '{}'\ndone\n",
      folder.string(), line_of(ready), line_of(LinkRequest{.kind = LinkRequest::Kind::kTry}),
      seconds, line_of(LinkReply{.kind = LinkReply::Kind::kTried}));
  write_file_atomically(folder / "agent", text);
  std::filesystem::permissions(folder / "agent", std::filesystem::perms::owner_all);
  std::filesystem::create_directory(folder / "trying");
  return {.words = {(folder / "agent").string()}};
}

// A thousand hosts that all open hundreds of connections at once would be a million, all of them
// on one machine where hosts are names of it.
TEST(LinkCheck, SomeHostsAtATimeTryTheOthers) {
  const TemporaryFolder folder;
  std::vector<std::string> hosts;
  for (int i = 0; i < 140; ++i) hosts.push_back(fmt::format("host{}", i));
  const LinkFindings found = check_links({.agent = agent_of(folder.path(), "1"),
                                          .hosts = hosts,
                                          .program = "onebit",
                                          .folder = "/",
                                          .interface = "",
                                          .ranges = {{.use = "values"}}},
                                         [] { return false; });
  EXPECT_TRUE(found.failed.empty()) << found.failed.front().what;
  std::istringstream counts(read_file(folder.path() / "counts"));
  int most = 0, times = 0;
  for (int count = 0; counts >> count; ++times) most = std::max(most, count);
  EXPECT_EQ(times, 140);
  EXPECT_LE(most, 128);
}

}  // namespace
}  // namespace onebit::cluster
