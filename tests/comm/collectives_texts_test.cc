#include <gtest/gtest.h>

#include "onebit/exchange/comm/collectives.h"
#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/ground/base/error.h"
#include "tests/base/message_of.h"

namespace onebit::comm {
namespace {

TEST(GatherTexts, EveryRankHasAllTexts) {
  run_thread_world(3, [](Communicator& communicator) {
    const std::string own(static_cast<size_t>(communicator.rank()), 'a');
    EXPECT_EQ(gather_texts(communicator, own), (std::vector<std::string>{"", "a", "aa"}));
    EXPECT_EQ(gather_texts(communicator, ""), std::vector<std::string>(3));
  });
}

// A path may have 4,096 bytes, and the advice follows it.
TEST(RunOnAll, ALongErrorReachesEveryRankWhole) {
  const std::string path(4000, 'p');
  run_thread_world(3, [&](Communicator& communicator) {
    const auto on_one = [&] {
      run_on_all(communicator, "not written", [&] {
        if (communicator.rank() == 1) fail("{}: disk full; free some space", path);
      });
    };
    EXPECT_EQ(message_of(on_one), "not written, rank 1: " + path + ": disk full; free some space");
    EXPECT_NO_THROW(run_on_all(communicator, "not written", [] {}));
  });
}

}  // namespace
}  // namespace onebit::comm
