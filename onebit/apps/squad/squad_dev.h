// The questions on which a SQuAD run is evaluated.
#pragma once

#include <memory>
#include <vector>

#include "onebit/apps/squad/score.h"
#include "onebit/apps/squad/squad_prediction.h"

namespace onebit::squad {

struct DevScore {
  double exact = 0, f1 = 0;  // in percent
  int64_t questions = 0;
};

class SquadDev {
 public:
  SquadDev(const Path& path, const training::ModelDescription& description, FeatureOptions features,
           DecodeOptions decode, int64_t batch, corpus::LeftOut left_out, int threads);

  batches::BatchBounds bounds() const {
    return {.sequences = batch_, .rows = batch_ * longest_, .longest = longest_};
  }
  const Dataset& dataset() const { return predict_; }
  // Computes EM and F1 of the model, equal on all ranks. Rank 0 keeps the answers. Collective.
  DevScore evaluate(Context& context, QuestionAnsweringModel& model,
                    training::DeviceBatchBuffer& buffer, comm::Communicator& communicator);
  // Writes predictions.json, nbest_predictions.json and, for version 2.0, null_odds.json of the
  // last evaluate().
  void write_answers(const Path& folder) const;

 private:
  Dataset predict_, score_;
  DecodeOptions decode_;
  int64_t batch_, longest_;
  int threads_;
  Features features_;
  std::vector<DecodedAnswer> answers_;
};

}  // namespace onebit::squad
