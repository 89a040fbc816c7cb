#include "onebit/training/training/model_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/temporary_folder.h"

namespace onebit::training {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ModelDescription described(const std::string& architecture) {
  return {.config = {.vocab_size = 6, .hidden_size = 24, .layers = 3},
          .architecture = architecture,
          .vocabulary = std::make_shared<text::Vocabulary>(text::Vocabulary::from_tokens(
              {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"}, "test"))};
}

TEST(ModelCard, ReportsWhatTheModelIsAndWasMadeOf) {
  const ModelCard card = {.task = "pretrain",
                          .step = 5,
                          .steps = 12,
                          .samples = 40,
                          .initial_values = "bert",
                          .data = {{"training data", "corpus|x: 7 tokens"}},
                          .data_identity = {{"stores", {{{"checksum", 77}}}}},
                          .result = "MLM loss 2.5",
                          .result_step = 4,
                          .recipe = {{"train_batch_size", 8}}};
  const std::string text = model_card_text(card, described("BertForMaskedLM"));
  EXPECT_TRUE(text.starts_with("---\nlibrary_name: transformers\npipeline_tag: fill-mask\ntags:"))
      << text;
  for (const char* part :
       {"# BertForMaskedLM, 3 layers of 24", "step 5 of 12, 40 samples",
        "| initial values | bert |", "6 tokens, uncased, checksum ", "corpus\\|x: 7 tokens",
        "| result at step 4 | MLM loss 2.5 |", "\"train_batch_size\": 8", "\"checksum\": 77",
        "AutoModelForMaskedLM.from_pretrained"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(ModelCard, LeavesOutWhatIsNotKnown) {
  const std::string text = model_card_text({.task = "pretrain"}, described("Other"));
  for (const char* part : {"pipeline_tag", "initial values", "result", "## ", "from_pretrained"}) {
    EXPECT_THAT(text, Not(HasSubstr(part)));
  }
  const TemporaryFolder folder;
  write_model_card(folder.path(), {.task = "pretrain"}, described("Other"));
  EXPECT_EQ(read_file(folder / "README.md"), text);
}

}  // namespace
}  // namespace onebit::training
