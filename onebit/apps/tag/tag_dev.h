// Tagged sentences on which a tagger is evaluated during training.
#pragma once

#include <vector>

#include "onebit/apps/tag/encoded_sentences.h"
#include "onebit/apps/tag/scores.h"
#include "onebit/apps/tag/tag_config.h"
#include "onebit/apps/tag/tag_set.h"
#include "onebit/apps/tag/tagging_model.h"
#include "onebit/exchange/comm/communicator.h"
#include "onebit/training/training/device_batch.h"

namespace onebit::tag {

class TagDev {
 public:
  // `description` contains the labels, which are tags of `scheme`. Errors: those of
  // tag::read_sentences() and TagSet::evaluation_targets().
  TagDev(const Path& path, const TagConfig& config, const training::ModelDescription& description,
         Scheme scheme, int threads);

  const Sentences& sentences() const { return sentences_; }
  const EncodedSentences& encoded() const { return encoded_; }
  const EvaluationTargets& targets() const { return targets_; }
  batches::BatchBounds bounds() const;
  // The scores are equal on all ranks. Collective.
  Scores evaluate(Context& context, TaggingModel& model, training::DeviceBatchBuffer& buffer,
                  comm::Communicator& communicator) const;

 private:
  std::vector<std::string> labels_;
  Scheme scheme_;
  int64_t batch_;
  Sentences sentences_;
  EvaluationTargets targets_;
  EncodedSentences encoded_;
};

}  // namespace onebit::tag
