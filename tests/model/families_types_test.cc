// The encoders of all families and their masked-word heads, in bf16 and on CUDA devices.
#include "onebit/math/model/pretraining_model.h"
#include "tests/model/family_pass.h"

namespace onebit::model {
namespace {

TEST_P(FamilyPasses, MaskedWords) {
  compare_with_f32(
      [](const EncoderConfig& config, ParameterTable& table) {
        return std::make_unique<PreTrainingModel>(config, table, PreTrainingHeads::kMaskedWords);
      },
      [](TinyBatch& batch) { return batch.view(); },
      [](PreTrainingModel& model, Context& context, const DeviceBatch& batch,
         PassOutcome& outcome) {
        const auto result =
            model.forward_backward(context, batch, {.masked_lm = 0.05}, {.dropout_seed = 5});
        outcome.loss = result.mlm_loss_sum;
        append_outputs(outcome, model.predict_masked(context, batch));
      });
}

INSTANTIATE_TEST_SUITE_P(Cpu, FamilyPasses, ::testing::ValuesIn(cpu_places()), name_of_place);
INSTANTIATE_TEST_SUITE_P(Cuda, FamilyPasses, ::testing::ValuesIn(cuda_places()), name_of_place);

}  // namespace
}  // namespace onebit::model
