// Examples on which vectors of texts are evaluated during training.
#pragma once

#include "onebit/apps/embed/embed_config.h"
#include "onebit/apps/embed/scores.h"
#include "onebit/apps/embed/text_encoder.h"
#include "onebit/exchange/comm/communicator.h"

namespace onebit::embed {

class EmbedDev {
 public:
  // Errors: those of embed::read_examples().
  EmbedDev(const Path& path, const EmbedConfig& config,
           const training::ModelDescription& description, int threads);

  const Examples& examples() const { return examples_; }
  int64_t cut() const { return encoded_.cut(); }
  batches::BatchBounds bounds() const;
  // The scores are equal on all ranks. Collective.
  Scores evaluate(Context& context, EmbeddingModel& model, training::DeviceBatchBuffer& buffer,
                  comm::Communicator& communicator) const;

 private:
  int64_t batch_;
  Examples examples_;
  finetune::EncodedExamples encoded_;
};

}  // namespace onebit::embed
