// Answers of a question-answering model to the questions of a SQuAD file.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/comm/communicator.h"
#include "onebit/data/answer_decoder.h"
#include "onebit/data/span_stream.h"
#include "onebit/model/question_answering_model.h"
#include "onebit/training/device_batch.h"
#include "onebit/training/model_folder.h"

namespace onebit::tasks {

// The logits of every window, on all ranks; the ranks share the work. The model and `buffer` must
// be planned for `batch` sequences of features.options().max_sequence_length. Collective.
data::SpanLogits predict_logits(Context& context, model::QuestionAnsweringModel& model,
                                const data::SquadFeatures& features, int64_t batch,
                                training::DeviceBatchBuffer& buffer,
                                comm::Communicator& communicator);

// Whether a file speaks of unanswerable questions: version 2, or one marked so.
bool has_unanswerable(const data::SquadDataset& dataset);

struct PredictionOptions {
  data::SquadFeatureOptions features;  // `use` is kPredict whatever it says
  data::DecodeOptions decode;
  int64_t batch = 32;
};

// A fine-tuned model from the disk, f32.
class SquadPredictor {
 public:
  // `path` as find_model_folder() takes it. Error: a model without "qa_outputs".
  SquadPredictor(Context& context, const Path& path);

  const training::ModelDescription& description() const { return description_; }
  // Builds features and computes their logits. Collective. `dataset` must outlive the result.
  struct Computed {
    std::unique_ptr<data::SquadFeatures> features;
    data::SpanLogits logits;
  };
  Computed compute(const data::SquadDataset& dataset, const PredictionOptions& options,
                   comm::Communicator& communicator);
  // One question on one text.
  data::DecodedAnswer ask(std::string_view context, std::string_view question,
                          const PredictionOptions& options);

 private:
  Context& context_;
  training::ModelDescription description_;
  params::Table table_;
  model::QuestionAnsweringModel model_;
};

}  // namespace onebit::tasks
