#include "onebit/apps/embed/embed_dev.h"

namespace onebit::embed {

EmbedDev::EmbedDev(const Path& path, const EmbedConfig& config,
                   const training::ModelDescription& description, int threads)
    : batch_(config.prediction_batch),
      examples_(embed::read_examples(path, config.layout)),
      encoded_(examples_.texts.all, description.vocabulary, description.casing,
               {.max_sequence_length = config.max_sequence_length,
                .has_pairs = false,
                .threads = threads}) {}

batches::BatchBounds EmbedDev::bounds() const {
  return {.sequences = batch_, .rows = batch_ * encoded_.longest(), .longest = encoded_.longest()};
}

Scores EmbedDev::evaluate(Context& context, EmbeddingModel& model,
                          training::DeviceBatchBuffer& buffer,
                          comm::Communicator& communicator) const {
  const std::vector<float> vectors =
      encode_texts(context, model, encoded_, batch_, buffer, communicator);
  return embed::score(examples_, vectors, context.threads());
}

}  // namespace onebit::embed
