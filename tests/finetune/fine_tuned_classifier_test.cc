#include "onebit/training/finetune/fine_tuned_classifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"
#include "tests/base/text_files.h"

namespace onebit::finetune {
namespace {

constexpr const char* kTask = "classify";

training::ModelDescription with_positions(int64_t positions) {
  training::ModelDescription description;
  description.config.max_positions = positions;
  return description;
}

// As in transformers' pipelines and in a CrossEncoder of sentence-transformers.
TEST(FineTunedClassifier, AnotherProgramsModelReadsAllThatItCan) {
  const TemporaryFolder folder;
  training::ModelDescription description = with_positions(512);
  EXPECT_EQ(sequence_length({}, description, folder / "", kTask), 512);
  description.tokenizer_limit = 300;
  EXPECT_EQ(sequence_length({}, description, folder / "", kTask), 300);
  EXPECT_EQ(sequence_length(400, description, folder / "", kTask), 400);
  description.tokenizer_limit = 1'000'000'000;
  EXPECT_EQ(sequence_length({}, description, folder / "", kTask), 512);
  EXPECT_EQ(sequence_length(64, description, folder / "", kTask), 64);
  EXPECT_THAT(
      message_of([&] { sequence_length(513, description, "model", kTask); }),
      testing::HasSubstr("a sequence length of 513 was requested, model has 512 positions"));
}

TEST(FineTunedClassifier, AModelOfARunKeepsTheLengthOfItsTraining) {
  const TextFiles files;
  const auto write = [&](const std::string& text) {
    return files.write("recipe.json", text).parent_path();
  };
  training::ModelDescription description = with_positions(512);
  const Path run = write(R"({"task": "classify", "data": {"max_sequence_length": 200}})");
  EXPECT_EQ(sequence_length({}, description, run, kTask), 200);
  EXPECT_EQ(sequence_length({}, description, run / "model", kTask), 200);
  EXPECT_EQ(sequence_length(64, description, run, kTask), 64);
  description.tokenizer_limit = 100;
  EXPECT_EQ(sequence_length({}, description, run, kTask), 200);
  // The usual length, and less where the model has fewer positions.
  write(R"({"task": "classify"})");
  EXPECT_EQ(sequence_length({}, description, run, kTask), kUsualLength);
  EXPECT_EQ(sequence_length({}, with_positions(64), run, kTask), 64);
  // A recipe of another task says nothing of this one.
  write(R"({"task": "pretrain", "data": {"max_sequence_length": 200}})");
  EXPECT_EQ(sequence_length({}, with_positions(512), run, kTask), 512);
}

}  // namespace
}  // namespace onebit::finetune
