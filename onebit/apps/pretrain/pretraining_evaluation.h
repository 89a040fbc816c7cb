// Evaluates a model on disk on a held-out token store.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "onebit/data/batches/batch_stream.h"
#include "onebit/exchange/comm/communicator.h"
#include "onebit/math/device/context.h"
#include "onebit/math/model/pretraining_model.h"
#include "onebit/training/training/device_batch.h"
#include "onebit/training/training/evaluation.h"

namespace onebit::pretrain {

// Held-out loss and accuracy of a pre-training model on one or several held-out stores: the one of
// the domain which is learned, and others, to measure what is forgotten.

// Means over all held-out samples.
struct HeldOutResult {
  double mlm_loss = 0, mlm_accuracy = 0;
  bool next_sentence = false;  // else the next two are 0 and not shown
  double nsp_loss = 0, nsp_accuracy = 0;
  int64_t samples = 0, masked = 0;
  double seconds = 0;

  double loss() const { return mlm_loss + nsp_loss; }
};

// `name` is the store's. It is empty if there is only one.
struct NamedResult {
  std::string name;
  HeldOutResult result;
};

// The figures by name: the first store's without a prefix ("mlm_loss"), the others' under the
// store's name ("books/mlm_loss").
training::Evaluation to_evaluation(const std::vector<NamedResult>& results);

// Describes such a record, with `first_name` for the first store: "MLM loss 2.1034, 55.12 % of
// masked words right; books: MLM loss 1.8711, ...".
std::string describe_held_out(const std::vector<metrics::Metric>& record,
                              const std::string& first_name);
// Describes what training changed: "MLM loss -0.9120; books: +0.2011".
std::string describe_change(const std::vector<metrics::Metric>& before,
                            const std::vector<metrics::Metric>& after,
                            const std::string& first_name);

// Whether `name` is a figure's. Stores must not use these names.
bool is_held_out_figure(const std::string& name);

// Evaluates this rank's batches and returns the result over all ranks to every rank. The model must
// be planned for the stream's bounds. Collective.
HeldOutResult evaluate_held_out(Context& context, model::PreTrainingModel& model,
                                batches::EvaluationStream& stream,
                                training::DeviceBatchBuffer& buffer,
                                comm::Communicator& communicator);

struct PretrainingEvaluationOptions {
  Path model;  // resolved by find_model_folder()
  Path data;   // token store
  // Change the recipe of the run if the model is in one of its checkpoints, else a recipe whose
  // sequences the model can take and whose heads it has. All samples are evaluated, unless
  // data.evaluation_samples is changed.
  std::vector<std::string> overrides = {};
  std::optional<DType> compute = DType::kF32;  // absent: the type of the device
};

// Uses the pairs and masks of the run's own evaluation unless others are given. Errors: a store of
// another vocabulary or casing, a model without a masked-word head, or without the next-sentence
// head that is requested.
HeldOutResult evaluate_model(Context& context, const PretrainingEvaluationOptions& task,
                             comm::Communicator& communicator);

}  // namespace onebit::pretrain
