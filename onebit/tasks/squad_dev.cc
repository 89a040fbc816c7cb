#include "onebit/tasks/squad_dev.h"

#include <array>

#include "onebit/base/log.h"
#include "onebit/data/answer_files.h"

namespace onebit::tasks {
namespace {

data::SquadFeatureOptions for_prediction(data::SquadFeatureOptions options, int threads) {
  options.use = data::SquadUse::kPredict;
  options.threads = threads;
  return options;
}

}  // namespace

SquadDev::SquadDev(const Path& path, const training::ModelDescription& description,
                   data::SquadFeatureOptions features, data::DecodeOptions decode, int64_t batch,
                   int threads)
    : predict_(data::read_squad(path, data::SquadUse::kPredict)),
      score_(data::read_squad(path, data::SquadUse::kScore)),
      decode_(decode),
      batch_(batch),
      longest_(features.max_sequence_length),
      threads_(threads),
      features_(predict_, description.vocabulary, description.casing,
                for_prediction(features, threads)) {
  decode_.may_be_unanswerable = has_unanswerable(predict_);
}

DevScore SquadDev::evaluate(Context& context, model::QuestionAnsweringModel& model,
                            training::DeviceBatchBuffer& buffer, comm::Communicator& communicator) {
  const data::SpanLogits logits =
      predict_logits(context, model, features_, batch_, buffer, communicator);
  std::array<double, 2> score{};
  const bool first = communicator.rank() == 0;
  if (first) {
    answers_ = data::decode_answers(features_, logits, decode_, threads_);
    const data::SquadScore scored = data::score_squad(
        score_, data::predictions_of(predict_, answers_), data::rules_for(score_));
    score = {scored.all.exact, scored.all.f1};
  }
  communicator.broadcast(std::as_writable_bytes(std::span(score)), 0);
  return {.exact = score[0],
          .f1 = score[1],
          .questions = static_cast<int64_t>(score_.questions.size())};
}

void SquadDev::write_answers(const Path& folder) const {
  data::write_answers(
      {.predictions = folder / "predictions.json",
       .n_best = folder / "nbest_predictions.json",
       .null_odds = decode_.may_be_unanswerable ? folder / "null_odds.json" : Path()},
      predict_, answers_);
}

}  // namespace onebit::tasks
