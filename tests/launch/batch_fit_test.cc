#include "onebit/program/launch/batch_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onebit::launch {
namespace {

struct FitCase {
  engine::BatchSizes planned;
  int most;
  BatchFit fit;
};

TEST(BatchFit, KeepsTheBatch) {
  const FitCase cases[] = {
      {{64, 4, 4}, 4, {4, {64, 4, 4}}},
      {{64, 4, 4}, 2, {2, {64, 4, 8}}},
      {{64, 4, 4}, 3, {3, {64, 4, 6, true}}},  // 64 does not divide by 3
      {{12, 4, 1}, 2, {2, {12, 3, 2}}},        // 6 a rank do not divide by 4
      {{14, 4, 1}, 2, {2, {14, 4, 2, true}}},  // 7 a rank: 4 and 3
      {{6, 2, 1}, 1, {1, {6, 2, 3}}},
      {{7, 1, 1}, 6, {6, {7, 1, 2, true}}},
      {{8, 8, 1}, 4, {4, {8, 2, 1}}},
      {{2, 1, 1}, 3, {2, {2, 1, 1}}},
      {{8, 8, 1, true}, 4, {4, {8, 2, 1, true}}},  // as the recipe asks
  };
  for (const FitCase& one : cases) {
    const BatchFit fit = fit_batch(one.planned, one.most);
    EXPECT_EQ(fit.ranks, one.fit.ranks);
    EXPECT_EQ(fit.sizes.micro, one.fit.sizes.micro);
    EXPECT_EQ(fit.sizes.accumulation, one.fit.sizes.accumulation);
    EXPECT_EQ(fit.sizes.train, one.planned.train);
    EXPECT_EQ(fit.sizes.uneven, one.fit.sizes.uneven);
    const cluster::Words words = overrides_of(fit.sizes);
    EXPECT_EQ(words.back() == "run.uneven_batches=true", fit.sizes.uneven);
    EXPECT_EQ(words.size(), fit.sizes.uneven ? 8u : 6u);
  }
}

TEST(BatchFit, TakesTheLastRanksAway) {
  cluster::Hosts hosts = {cluster::make_host("a", 2, ""), cluster::make_host("b", 2, ""),
                          cluster::make_host("c", 2, "")};
  keep_ranks(hosts, 3);
  ASSERT_EQ(hosts.size(), 2u);
  EXPECT_EQ(hosts[1].name, "b");
  EXPECT_THAT(hosts[1].slots, testing::ElementsAre(0));
}

TEST(BatchFit, KeepsHostsWithCopies) {
  const cluster::Hosts planned = {cluster::make_host("a", 1, ""), cluster::make_host("b", 1, ""),
                                  cluster::make_host("c", 1, ""), cluster::make_host("d", 1, "")};
  const auto left_without = [&](const std::string& lost, int ranks) {
    cluster::Hosts hosts = planned;
    std::erase_if(hosts, [&](const cluster::Host& host) { return host.name == lost; });
    keep_ranks_and_copies(hosts, ranks, planned);
    std::string names;
    for (const cluster::Host& host : hosts) names += host.name;
    return names;
  };
  // The next host has the copy of the lost host, which had the previous one's.
  EXPECT_EQ(left_without("c", 2), "bd");
  EXPECT_EQ(left_without("a", 2), "bd");
  EXPECT_EQ(left_without("b", 2), "ac");
  EXPECT_EQ(left_without("d", 2), "ac");
  EXPECT_EQ(left_without("", 3), "abc");
  EXPECT_EQ(left_without("d", 3), "abc");
  EXPECT_EQ(left_without("c", 1).size(), 1u);
  cluster::Hosts wide = {cluster::make_host("a", 2, ""), cluster::make_host("b", 3, ""),
                         cluster::make_host("c", 1, "")};
  keep_ranks_and_copies(wide, 3, wide);
  EXPECT_EQ(wide.size(), 3u);
}

}  // namespace
}  // namespace onebit::launch
