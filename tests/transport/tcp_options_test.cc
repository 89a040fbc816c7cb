#include "onebit/exchange/transport/tcp_options.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/base/message_of.h"

namespace onebit::transport {
namespace {

// Sets environment variables until the end of a test, and removes all others that are read.
class TcpVariables {
 public:
  explicit TcpVariables(const std::vector<std::pair<std::string, std::string>>& given) {
    for (const char* name : {"MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
                             "GROUP_RANK", "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_RUN_ID",
                             "ONEBIT_LAUNCH_ID", "GLOO_SOCKET_IFNAME", "ONEBIT_TCP_INTERFACE",
                             "ONEBIT_TCP_PORTS", "ONEBIT_TCP_MASTER_PORT", "ONEBIT_TCP_TOKEN",
                             "ONEBIT_TCP_START_SECONDS", "ONEBIT_TCP_SILENT_SECONDS"}) {
      const char* value = std::getenv(name);
      before_.emplace_back(name, value == nullptr ? std::nullopt : std::optional(value));
      unsetenv(name);
    }
    for (const auto& [name, value] : given) setenv(name.c_str(), value.c_str(), 1);
  }
  ~TcpVariables() {
    for (const auto& [name, value] : before_) {
      value ? setenv(name.c_str(), value->c_str(), 1) : unsetenv(name.c_str());
    }
  }

 private:
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

TEST(TcpOptions, AreThoseOfTheEnvironment) {
  const TcpVariables variables({{"MASTER_ADDR", "node1"},
                                {"MASTER_PORT", "29500"},
                                {"LOCAL_RANK", "1"},
                                {"LOCAL_WORLD_SIZE", "2"},
                                {"GROUP_RANK", "3"},
                                {"GLOO_SOCKET_IFNAME", "eth1"},
                                {"ONEBIT_TCP_PORTS", "40000-40999"},
                                {"ONEBIT_TCP_START_SECONDS", "7"}});
  const TcpOptions options = tcp_options_from_environment(5, 8);
  EXPECT_EQ(options.rank, 5);
  EXPECT_EQ(options.world_size, 8);
  EXPECT_EQ(options.master, "node1");
  EXPECT_EQ(options.port, 29500);
  EXPECT_EQ(options.local_rank, 1);
  EXPECT_EQ(options.group, 3);
  EXPECT_FALSE(options.on_one_machine);
  EXPECT_EQ(options.interfaces, "eth1");
  EXPECT_EQ(options.first_port, 40000);
  EXPECT_EQ(options.last_port, 40999);
  EXPECT_EQ(options.start_seconds, 7);
}

// torchrun listens at MASTER_PORT itself.
TEST(TcpOptions, RanksOfTorchrunTakeTheNextPort) {
  const TcpVariables variables({{"MASTER_ADDR", "node1"},
                                {"MASTER_PORT", "29500"},
                                {"LOCAL_WORLD_SIZE", "2"},
                                {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  EXPECT_EQ(tcp_options_from_environment(0, 2).port, 29501);
  EXPECT_TRUE(tcp_options_from_environment(0, 2).on_one_machine);
  setenv("ONEBIT_TCP_MASTER_PORT", "500", 1);
  EXPECT_EQ(tcp_options_from_environment(0, 2).port, 500);
}

TEST(TcpOptions, WrongVariablesAreNamed) {
  const std::pair<const char*, const char*> wrong[] = {{"MASTER_PORT", "http"},
                                                       {"MASTER_PORT", "70000"},
                                                       {"LOCAL_RANK", "-1"},
                                                       {"ONEBIT_TCP_PORTS", "9-1"},
                                                       {"ONEBIT_TCP_START_SECONDS", "0"}};
  for (const auto& [name, value] : wrong) {
    const TcpVariables variables(
        {{"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}, {name, value}});
    const std::string message = message_of([] { tcp_options_from_environment(0, 2); });
    EXPECT_NE(message.find(name), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace onebit::transport
