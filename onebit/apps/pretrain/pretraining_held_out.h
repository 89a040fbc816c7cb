// Held-out loss and accuracy of a pre-training model on one or several held-out stores: that of the
// domain which is learned, and others, to measure what is forgotten.
#pragma once

#include <string>
#include <vector>

#include "onebit/data/batches/evaluation_stream.h"
#include "onebit/exchange/comm/communicator.h"
#include "onebit/math/model/pretraining_model.h"
#include "onebit/training/training/device_batch.h"
#include "onebit/training/training/evaluation.h"

namespace onebit::pretrain {

// Means over all held-out samples.
struct HeldOutResult {
  double mlm_loss = 0, mlm_accuracy = 0;
  bool next_sentence = false;  // else the next two are 0 and not shown
  double nsp_loss = 0, nsp_accuracy = 0;
  int64_t samples = 0, masked = 0;
  double seconds = 0;

  double loss() const { return mlm_loss + nsp_loss; }
};

// `name` is that of the store; it is empty if there is only one.
struct NamedResult {
  std::string name;
  HeldOutResult result;
};

// The figures by name: those of the first store without a prefix ("mlm_loss"), those of the others
// under the store's name ("books/mlm_loss").
training::Evaluation to_evaluation(const std::vector<NamedResult>& results);

// Describes such a record, with `first_name` for the first store: "MLM loss 2.1034, 55.12 % of
// masked words right; books: MLM loss 1.8711, ...".
std::string describe_held_out(const std::vector<metrics::Metric>& record,
                              const std::string& first_name);
// Describes what training changed: "MLM loss -0.9120; books: +0.2011".
std::string describe_change(const std::vector<metrics::Metric>& before,
                            const std::vector<metrics::Metric>& after,
                            const std::string& first_name);

// Whether `name` is that of a figure; stores must not use these names.
bool is_held_out_figure(const std::string& name);

// Evaluates this rank's batches and returns the result over all ranks to every rank. The model must
// be planned for the stream's bounds. Collective.
HeldOutResult evaluate_held_out(Context& context, model::PreTrainingModel& model,
                                batches::EvaluationStream& stream,
                                training::DeviceBatchBuffer& buffer,
                                comm::Communicator& communicator);

}  // namespace onebit::pretrain
