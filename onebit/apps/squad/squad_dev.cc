#include "onebit/apps/squad/squad_dev.h"

#include <array>

#include "onebit/apps/squad/answer_files.h"
#include "onebit/ground/base/log.h"

namespace onebit::squad {
namespace {

FeatureOptions for_prediction(FeatureOptions options, int threads) {
  options.use = Use::kPredict;
  options.threads = threads;
  return options;
}

}  // namespace

SquadDev::SquadDev(const Path& path, const training::ModelDescription& description,
                   FeatureOptions features, DecodeOptions decode, int64_t batch,
                   corpus::LeftOut left_out, int threads)
    : predict_(squad::read_dataset(path, Use::kPredict, left_out)),
      score_(squad::read_dataset(path, Use::kScore, left_out)),
      decode_(decode),
      batch_(batch),
      longest_(features.max_sequence_length),
      threads_(threads),
      features_(predict_, description.vocabulary, description.casing,
                for_prediction(features, threads)) {
  decode_.may_be_unanswerable =
      description.may_be_unanswerable.value_or(squad::has_unanswerable(predict_));
}

DevScore SquadDev::evaluate(Context& context, QuestionAnsweringModel& model,
                            training::DeviceBatchBuffer& buffer, comm::Communicator& communicator) {
  const SpanLogits logits = predict_logits(context, model, features_, batch_, buffer, communicator);
  std::array<double, 2> score{};
  const bool first = communicator.rank() == 0;
  if (first) {
    answers_ = squad::decode_answers(features_, logits, decode_, threads_);
    const Score scored = squad::score_predictions(score_, squad::predictions_of(predict_, answers_),
                                                  squad::rules_for(score_));
    score = {scored.all.exact, scored.all.f1};
  }
  communicator.broadcast(std::as_writable_bytes(std::span(score)), 0);
  return {.exact = score[0],
          .f1 = score[1],
          .questions = static_cast<int64_t>(score_.questions.size())};
}

void SquadDev::write_answers(const Path& folder) const {
  squad::write_answers(
      {.predictions = folder / "predictions.json",
       .n_best = folder / "nbest_predictions.json",
       .null_odds = decode_.may_be_unanswerable ? folder / "null_odds.json" : Path()},
      predict_, answers_);
}

}  // namespace onebit::squad
