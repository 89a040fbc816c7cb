#include "onebit/exchange/comm/thread_communicator.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "onebit/ground/base/error.h"

namespace onebit::comm {
namespace {

TEST(ThreadCommunicator, NamesRanksThatDisagreeAboutSizes) {
  const auto disagree = [](Communicator& world) {
    std::vector<std::byte> all(world.rank() == 0 ? 6 : 8);
    world.all_gather(std::span(all).first(all.size() / 2), all);
  };
  try {
    run_thread_world(2, disagree);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("which expects"), std::string::npos) << error.what();
  }
}

TEST(ThreadCommunicator, NamesRanksThatCallDifferentCollectives) {
  const auto disagree = [](Communicator& world) {
    std::vector<std::byte> bytes(2);
    if (world.rank() == 0) {
      world.broadcast(bytes, 0);
    } else {
      world.all_gather(std::span(bytes).first(1), bytes);
    }
  };
  EXPECT_THROW(run_thread_world(2, disagree), Error);
}

}  // namespace
}  // namespace onebit::comm
