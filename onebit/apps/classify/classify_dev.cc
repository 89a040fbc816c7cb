#include "onebit/apps/classify/classify_dev.h"

#include "onebit/apps/classify/classify_prediction.h"

namespace onebit::classify {

ClassifyDev::ClassifyDev(DevFile file, const ClassifyConfig& config,
                         const training::ModelDescription& description, int threads)
    : file_(std::move(file)),
      labels_(description.classifier.labels),
      batch_(config.prediction_batch),
      examples_(classify::read_labelled(file_.path, config.layout, config.label_format)),
      targets_(classify::targets_of(examples_, config.label_format, labels_)),
      encoded_(examples_.all, description.vocabulary, description.casing,
               {.max_sequence_length = config.max_sequence_length,
                .has_pairs = examples_.has_pairs,
                .threads = threads}) {}

batches::BatchBounds ClassifyDev::bounds() const {
  return {.sequences = batch_, .rows = batch_ * encoded_.longest(), .longest = encoded_.longest()};
}

Scores ClassifyDev::evaluate(Context& context, ClassificationModel& model,
                             const ScoreOptions& options, training::DeviceBatchBuffer& buffer,
                             comm::Communicator& communicator) const {
  const std::vector<float> outputs =
      predict_outputs(context, model, encoded_, batch_, buffer, communicator);
  return classify::score(targets_, labels_, outputs, options);
}

}  // namespace onebit::classify
