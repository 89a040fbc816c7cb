#include "onebit/apps/pretrain/pretraining_heads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/math/model/pretraining_model.h"

namespace onebit::pretrain {
namespace {

using ::testing::UnorderedElementsAre;

TEST(PretrainingHeads, HeadsOfOtherTasksAreLeftOut) {
  EXPECT_THAT(all_present(model::PreTrainingHeads::kBoth).may_ignore,
              UnorderedElementsAre("qa_outputs.", "classifier."));
  EXPECT_THAT(
      all_present(model::PreTrainingHeads::kMaskedWords).may_ignore,
      UnorderedElementsAre("qa_outputs.", "classifier.", "bert.pooler.", "cls.seq_relationship."));
}

}  // namespace
}  // namespace onebit::pretrain
