#include "onebit/training/training/rank_agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/exchange/transport/world.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"

namespace onebit::training {
namespace {

Json recipe() {
  return parse_json(R"({"run": {"steps": 100, "seed": 42}, "betas": [0.9, 0.999]})", "recipe.json");
}

// The message that each rank gets if rank r passes values[r].
std::vector<std::string> messages(const std::vector<Json>& values) {
  std::vector<std::string> messages(values.size());
  comm::run_thread_world(static_cast<int>(values.size()), [&](comm::Communicator& communicator) {
    const auto rank = static_cast<size_t>(communicator.rank());
    try {
      require_same_on_all(communicator, values[rank], "recipe.json: the recipe", "copy it");
    } catch (const Error& error) {
      messages[rank] = error.what();
    }
    communicator.barrier();  // no rank has left the others waiting
  });
  return messages;
}

TEST(RankAgreement, OfEqualValuesIsSilent) {
  EXPECT_THAT(messages({recipe()}), testing::Each(""));
  EXPECT_THAT(messages({recipe(), recipe(), recipe()}), testing::Each(""));
}

TEST(RankAgreement, NamesTheFirstRankAndKeyThatDifferOnEveryRank) {
  Json other = recipe(), third = recipe();
  other["run"]["seed"] = 7;
  other["betas"][1] = 0.98;
  third["run"]["steps"] = 5;
  EXPECT_THAT(messages({recipe(), recipe(), other, third}),
              testing::Each("recipe.json: the recipe of rank 2 differs from that of rank 0: "
                            "`betas.1` is 0.98, on rank 0 it is 0.999; copy it"));
}

TEST(RankAgreement, AKeyThatOneRankLacksDiffers) {
  Json other = recipe();
  other.erase("run");
  EXPECT_THAT(messages({other, recipe()}),
              testing::Each("recipe.json: the recipe of rank 1 differs from that of rank 0: "
                            "`run.seed` is 42, on rank 0 it is absent; copy it"));
}

}  // namespace
}  // namespace onebit::training
