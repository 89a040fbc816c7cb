#include "onebit/tasks/pretraining_held_out.h"

#include <array>

#include "onebit/base/clock.h"
#include "onebit/tasks/pretraining_batch.h"

namespace onebit::tasks {

HeldOutResult evaluate_held_out(Context& context, model::PreTrainingModel& model,
                                data::EvaluationStream& stream, training::DeviceBatchBuffer& buffer,
                                comm::Communicator& communicator) {
  const Stopwatch watch;
  model::PreTrainingModel::Result sums;
  data::Batch batch;
  batch.reserve(stream.bounds());
  for (int64_t index = 0; index < stream.batches(); ++index) {
    stream.build(index, batch);
    sums += model.evaluate(context, upload(context, buffer, batch));
  }
  std::array<double, 6> totals = {sums.mlm_loss_sum,
                                  static_cast<double>(sums.masked_correct),
                                  static_cast<double>(sums.masked),
                                  sums.nsp_loss_sum,
                                  static_cast<double>(sums.nsp_correct),
                                  static_cast<double>(sums.sequences)};
  communicator.all_reduce(std::span<double>(totals), comm::Reduction::kSum);
  require(totals[2] > 0 && totals[5] > 0, "the held-out data gave no sample to evaluate");
  return {.mlm_loss = totals[0] / totals[2],
          .mlm_accuracy = totals[1] / totals[2],
          .nsp_loss = totals[3] / totals[5],
          .nsp_accuracy = totals[4] / totals[5],
          .samples = static_cast<int64_t>(totals[5]),
          .masked = static_cast<int64_t>(totals[2]),
          .seconds = watch.seconds()};
}

training::Evaluation to_evaluation(const HeldOutResult& result) {
  training::Evaluation evaluation = {
      .key = "held_out",
      .metrics = {{"loss", result.loss()},
                  {"mlm_loss", result.mlm_loss},
                  {"mlm_accuracy", result.mlm_accuracy},
                  {"nsp_loss", result.nsp_loss},
                  {"nsp_accuracy", result.nsp_accuracy},
                  {"samples", static_cast<double>(result.samples), true}},
      .line = fmt::format(
          "held-out MLM loss {:.4f}, accuracy {:.2f} %; NSP loss {:.4f}, accuracy {:.2f} %",
          result.mlm_loss, 100 * result.mlm_accuracy, result.nsp_loss, 100 * result.nsp_accuracy)};
  evaluation.record = evaluation.metrics;
  return evaluation;
}

}  // namespace onebit::tasks
