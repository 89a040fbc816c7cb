// Held-out loss and accuracy of a pre-training model, on one held-out store or on several: that of
// the domain which is learned, and others, to see what is forgotten.
#pragma once

#include <string>
#include <vector>

#include "onebit/comm/communicator.h"
#include "onebit/data/evaluation_stream.h"
#include "onebit/model/pretraining_model.h"
#include "onebit/training/device_batch.h"
#include "onebit/training/evaluation.h"

namespace onebit::tasks {

// Means over all held-out samples.
struct HeldOutResult {
  double mlm_loss = 0, mlm_accuracy = 0;
  bool next_sentence = false;  // else the next two are 0 and not shown
  double nsp_loss = 0, nsp_accuracy = 0;
  int64_t samples = 0, masked = 0;
  double seconds = 0;

  double loss() const { return mlm_loss + nsp_loss; }
};

// `name` is that of the store; empty where there is one alone.
struct NamedResult {
  std::string name;
  HeldOutResult result;
};

// The figures by name: of the first store as they are ("mlm_loss"), of the others under their names
// ("books/mlm_loss").
training::Evaluation to_evaluation(const std::vector<NamedResult>& results);

// Of such a record, with `first_name` for the first store: "MLM loss 2.1034, 55.12 % of masked
// words right; books: MLM loss 1.8711, ...".
std::string describe_held_out(const std::vector<metrics::Metric>& record,
                              const std::string& first_name);
// "MLM loss -0.9120; books: +0.2011": what training changed.
std::string describe_change(const std::vector<metrics::Metric>& before,
                            const std::vector<metrics::Metric>& after,
                            const std::string& first_name);

// The names of the figures, which no store may have.
bool is_held_out_figure(const std::string& name);

// Evaluates batches of this rank; every rank ends with the sums over all ranks. The model must be
// planned for the stream's bounds. Collective.
HeldOutResult evaluate_held_out(Context& context, model::PreTrainingModel& model,
                                data::EvaluationStream& stream, training::DeviceBatchBuffer& buffer,
                                comm::Communicator& communicator);

}  // namespace onebit::tasks
