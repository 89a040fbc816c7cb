#include "onebit/training/finetune/checkpoint_heads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/math/model/head_names.h"

namespace onebit::finetune {
namespace {

using ::testing::UnorderedElementsAre;

TEST(CheckpointHeads, ATaskLeavesOutWhatIsNotItsOwn) {
  EXPECT_THAT(heads_other_than({model::kAnswerHead}),
              UnorderedElementsAre("cls.", "classifier.", "bert.pooler."));
  EXPECT_THAT(heads_other_than({model::kClassifierHead, model::kPooler}),
              UnorderedElementsAre("cls.", "qa_outputs."));
  EXPECT_THAT(heads_other_than({model::kClassifierHead}),
              UnorderedElementsAre("bert.pooler.", "cls.", "qa_outputs."));
}

}  // namespace
}  // namespace onebit::finetune
