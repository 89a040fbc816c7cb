#include "onebit/apps/tag/tag_dev.h"

#include "onebit/apps/tag/tag_prediction.h"
#include "onebit/apps/tag/window_stream.h"

namespace onebit::tag {

TagDev::TagDev(const Path& path, const TagConfig& config,
               const training::ModelDescription& description, Scheme scheme, int threads)
    : labels_(description.classifier.labels),
      scheme_(scheme),
      batch_(config.prediction_batch),
      sentences_(tag::read_sentences(path, config.layout)),
      targets_(TagSet(labels_).evaluation_targets(
          sentences_, scheme,
          "tags of entities in another scheme are rewritten where tag.scheme is set")),
      encoded_(sentences_.all, description.vocabulary, description.casing,
               {.max_sequence_length = config.max_sequence_length,
                .stride = stride_of(config.stride, config.max_sequence_length),
                .threads = threads}) {}

batches::BatchBounds TagDev::bounds() const {
  return tag::bounds_of(encoded_, batch_);
}

Scores TagDev::evaluate(Context& context, TaggingModel& model, training::DeviceBatchBuffer& buffer,
                        comm::Communicator& communicator) const {
  const std::vector<float> outputs =
      predict_words(context, model, encoded_, batch_, buffer, communicator);
  return tag::score(
      {.sentences = sentences_, .targets = targets_.targets, .labels = labels_, .outputs = outputs},
      scheme_);
}

}  // namespace onebit::tag
