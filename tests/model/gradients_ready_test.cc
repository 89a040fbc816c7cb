// The order in which pre-training announces gradients. Other models are tested in their floors.
#include <algorithm>
#include <vector>

#include "onebit/math/model/pretraining_model.h"
#include "tests/model/announced_gradients.h"

namespace onebit::model {
namespace {

TEST_P(GradientsAnnounced, ByPretraining) {
  PreTrainingModel model(config_, table_, PreTrainingHeads::kBoth);
  check_passes_of(model, PreTrainingModel::LossWeights{1, 1}, batch_.view());
}

// The word embeddings' gradient then has only the look-ups, before which nothing overwrites it.
TEST_P(GradientsAnnounced, ByPretrainingWithoutMaskedWords) {
  PreTrainingModel model(config_, table_, PreTrainingHeads::kBoth);
  batch_.masked_rows.clear();
  batch_.masked_targets.clear();
  check_passes_of(model, PreTrainingModel::LossWeights{1, 1}, batch_.view());
}

class GradientsAnnouncedPreLn : public GradientsAnnounced {};

// The zero gradients of a dropped layer belong to the range of the layer before, whose pass ends
// with the norm that is the last parameter there.
TEST_P(GradientsAnnouncedPreLn, WithLayersLeftOut) {
  config_.layers = 5;
  const std::vector<std::vector<float>> patterns = {
      {1, 0, 0, 2, 0}, {1, 0, 2, 0, 3}, {1, 0, 0, 0, 0}, {1, 1.5f, 2, 2.5f, 0}};
  for (const std::vector<float>& factors : patterns) {
    ranges_.clear();
    seen_.clear();
    table_ = ParameterTable();
    PreTrainingModel model(config_, table_, PreTrainingHeads::kBoth);
    fill_by_name(table_, DType::kF32);
    model.plan(context_, batch_.limits(), {}, true);
    TrainingPass pass = watching_pass();
    pass.layer_factors = factors;
    model.forward_backward(context_, batch_.view(), {1, 1}, pass);
    const auto computed =
        factors.size() - static_cast<size_t>(std::count(factors.begin(), factors.end(), 0.0f));
    check(2 + 2 * computed);
    check_begin_of_update([&](TrainingPass pass_of_layers) {
      pass_of_layers.layer_factors = factors;
      model.forward_backward(context_, batch_.view(), {1, 1}, pass_of_layers);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Model, GradientsAnnounced, ::testing::Bool(), name_of_order);

INSTANTIATE_TEST_SUITE_P(Model, GradientsAnnouncedPreLn, ::testing::Values(true));

}  // namespace
}  // namespace onebit::model
