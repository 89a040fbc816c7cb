#include "onebit/apps/pretrain/pretraining_evaluation.h"

#include <gtest/gtest.h>

namespace onebit::pretrain {
namespace {

const HeldOutResult kPairs = {.mlm_loss = 2.5,
                              .mlm_accuracy = 0.5,
                              .next_sentence = true,
                              .nsp_loss = 0.25,
                              .nsp_accuracy = 0.9,
                              .samples = 40};
const HeldOutResult kWords = {.mlm_loss = 1.5, .mlm_accuracy = 0.75, .samples = 30};

TEST(HeldOut, TheFirstStoreHasNoPrefix) {
  const training::Evaluation evaluation = to_evaluation({{"", kPairs}});
  EXPECT_EQ(evaluation.key, "held_out");
  EXPECT_EQ(metrics::value_of(evaluation.metrics, "loss"), 2.75);
  EXPECT_EQ(metrics::value_of(evaluation.metrics, "nsp_accuracy"), 0.9);
  EXPECT_EQ(evaluation.line,
            "held-out MLM loss 2.5000, 50.00 % of masked words right; NSP loss 0.2500, 90.00 %");
}

TEST(HeldOut, TheOthersHaveTheirNames) {
  const training::Evaluation evaluation = to_evaluation({{"new", kWords}, {"old", kPairs}});
  EXPECT_EQ(metrics::value_of(evaluation.record, "loss"), 1.5);
  EXPECT_EQ(metrics::value_of(evaluation.record, "old/loss"), 2.75);
  EXPECT_EQ(evaluation.line,
            "held-out new: MLM loss 1.5000, 75.00 % of masked words right; old: MLM loss 2.5000, "
            "50.00 % of masked words right; NSP loss 0.2500, 90.00 %");
}

TEST(HeldOut, ChangesAreReportedForEachStore) {
  HeldOutResult later = kWords;
  later.mlm_loss = 1.25;
  const auto record = [](const HeldOutResult& first, const HeldOutResult& second) {
    return to_evaluation({{"new", first}, {"old", second}}).record;
  };
  EXPECT_EQ(describe_change(record(kPairs, kWords), record(kPairs, later), "new"),
            "MLM loss new: +0.0000; old: -0.2500");
  EXPECT_EQ(describe_change(to_evaluation({{"", kPairs}}).record,
                            to_evaluation({{"", kWords}}).record, ""),
            "MLM loss -1.0000");
}

TEST(HeldOut, NamesOfFiguresAreKnown) {
  for (const char* name : {"loss", "mlm_loss", "nsp_accuracy", "samples"}) {
    EXPECT_TRUE(is_held_out_figure(name)) << name;
  }
  EXPECT_FALSE(is_held_out_figure("books"));
}

}  // namespace
}  // namespace onebit::pretrain
