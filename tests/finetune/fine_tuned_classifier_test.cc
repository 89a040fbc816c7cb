#include "onebit/training/finetune/fine_tuned_classifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"

namespace onebit::finetune {
namespace {

// Nobody asked a short model for the usual length.
TEST(FineTunedClassifier, AShortModelUsesItsOwnLength) {
  training::ModelDescription description;
  description.config.max_positions = 64;
  EXPECT_EQ(sequence_length({}, kUsualLength, description, "model"), 64);
  EXPECT_EQ(sequence_length({}, 32, description, "model"), 32);
  description.tokenizer_limit = 7;
  EXPECT_EQ(sequence_length({}, kUsualLength, description, "model"), 7);
  EXPECT_EQ(sequence_length(64, kUsualLength, description, "model"), 64);
  description.tokenizer_limit = 1'000'000'000;
  EXPECT_EQ(sequence_length(64, kUsualLength, description, "model"), 64);
  EXPECT_THAT(message_of([&] { sequence_length(65, kUsualLength, description, "model"); }),
              testing::HasSubstr("a sequence length of 65 was requested, model has 64 positions"));
  description.config.max_positions = 512;
  EXPECT_EQ(sequence_length({}, kUsualLength, description, "model"), 128);
}

}  // namespace
}  // namespace onebit::finetune
