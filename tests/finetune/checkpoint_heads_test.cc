#include "onebit/training/finetune/checkpoint_heads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/apps/pretrain/pretraining_heads.h"
#include "onebit/math/model/head_names.h"
#include "onebit/math/model/pretraining_model.h"

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

TEST(CheckpointHeads, PretrainingReadsItsOwnHeads) {
  EXPECT_THAT(pretrain::all_present(model::PreTrainingHeads::kBoth).may_ignore,
              UnorderedElementsAre("qa_outputs.", "classifier."));
  EXPECT_THAT(
      pretrain::all_present(model::PreTrainingHeads::kMaskedWords).may_ignore,
      UnorderedElementsAre("qa_outputs.", "classifier.", "bert.pooler.", "cls.seq_relationship."));
}

}  // namespace
}  // namespace onebit::finetune
