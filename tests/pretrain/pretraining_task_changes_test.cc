// What a resumed run reports of data and keys that are others than before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/apps/pretrain/pretraining_task.h"
#include "tests/pretrain/pretraining_runs.h"

namespace onebit::pretrain {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kRecipe = R"({
  "train_batch_size": 8, "train_micro_batch_size_per_gpu": 2,
  "optimizer": {"type": "AdamW", "params": {"lr": 3e-3}},
  "model": {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
            "intermediate_size": 64, "max_position_embeddings": 32},
  "data": {"sequence_length": 32, "max_predictions_per_sequence": 5, "evaluation_samples": 16},
  "run": {"steps": 6, "evaluate_every": 6, "seed": 3}})";

class PretrainingChanges : public PretrainingRuns {
 protected:
  // Options that resume a finished run.
  PretrainingOptions trained() const {
    PretrainingOptions given = options_of(kRecipe, "run");
    train(given);
    given.resume = true;
    return given;
  }
  // What the start table of the resumed run says, a line each.
  static std::string decisions_of(const PretrainingOptions& given) {
    const auto communicator = comm::make_single_rank();
    Context context = Context::cpu(1);
    PretrainingTask task(given, *communicator);
    training::Session run(context, task, given, *communicator);
    return fmt::format("{}", fmt::join(run.start_facts().decisions, "\n"));
  }
};

TEST_F(PretrainingChanges, ReportsChangedKeys) {
  PretrainingOptions given = trained();
  EXPECT_THAT(decisions_of(given), Not(HasSubstr("changed:")));
  given.recipe.values["run"]["keep_last"] = 7;
  EXPECT_THAT(decisions_of(given), Not(HasSubstr("changed:")));
  given.recipe.values["run"]["seed"] = 4;
  EXPECT_THAT(decisions_of(given), HasSubstr("run.seed is 4, was 3"));
  given.data = {{corpus_.valid(), 0.0}};
  EXPECT_THAT(decisions_of(given), HasSubstr("other token stores"));
}

// The same tokens, with other ends of documents, are other data.
TEST_F(PretrainingChanges, ReportsChangedDocumentsAndHeldOutData) {
  PretrainingOptions given = trained();
  given.valid = {{"", corpus_.train()}};
  EXPECT_THAT(decisions_of(given), HasSubstr("held-out data are others"));
  EXPECT_THAT(decisions_of(given), Not(HasSubstr("other token stores")));
  given.valid = {{"", corpus_.valid()}};
  EXPECT_THAT(decisions_of(given), Not(HasSubstr("changed:")));
  given.data = {{corpus_.train_as_one_document(), 0.0}};
  EXPECT_THAT(decisions_of(given), HasSubstr("other token stores"));
}

}  // namespace
}  // namespace onebit::pretrain
