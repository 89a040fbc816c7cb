#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "onebit/apps/squad/answerer.h"
#include "onebit/apps/squad/squad_config.h"
#include "onebit/program/serve/character_places.h"
#include "onebit/program/serve/endpoints.h"
#include "onebit/training/finetune/fine_tuned_classifier.h"

namespace onebit::serve {
namespace {

bool has_text(const std::string& text) {
  return text.find_first_not_of(" \t\r\n") != std::string::npos;
}

// Without a given length the model's run decides. A given one that is smaller takes the question's
// room and the stride in proportion.
squad::AnswererOptions answerer_options(const EndpointOptions& options,
                                        const squad::Answerer& predictor, const Path& folder) {
  squad::AnswererOptions result = predictor.usual_options();
  if (!options.max_sequence_length) return result;
  const int64_t length = finetune::sequence_length(
      options.max_sequence_length, predictor.description(), folder, squad::kSquadTask);
  result.features = squad::within(result.features, length);
  result.features.max_sequence_length = length;
  result.is_window_chosen = true;
  return result;
}

// A question, whose parts are the windows over its context.
struct AnswerWork : Work {
  AnswerWork(std::unique_ptr<squad::Dataset> question, std::unique_ptr<squad::Features> of_question,
             std::vector<int64_t> tokens)
      : Work(std::move(tokens)),
        dataset(std::move(question)),
        features(std::move(of_question)),
        logits(*features) {}

  std::unique_ptr<squad::Dataset> dataset;  // which the features refer to
  std::unique_ptr<squad::Features> features;
  squad::SpanLogits logits;
};

class AnswerEndpoints : public Endpoints {
 public:
  AnswerEndpoints(Context& context, const Path& folder, const EndpointOptions& options,
                  Metrics& metrics)
      : predictor_(context, folder, options.compute, kFileUse),
        truncates_(options.truncates),
        windows_(predictor_.window_options(answerer_options(options, predictor_, folder))),
        tokenizers_(predictor_.description()),
        lane_(options.queue, context.threads(), metrics,
              [this](std::span<const Part> parts) { compute(parts); }) {
    windows_.threads = 1;
    const int64_t longest = windows_.max_sequence_length;
    predictor_.reserve({.sequences = options.queue.batch_parts,
                        .rows = std::max(options.queue.batch_tokens, longest),
                        .longest = longest});
  }

  std::string kind() const override { return "answers"; }
  Json model_type() const override {
    const bool may_abstain = predictor_.description().may_be_unanswerable.value_or(false);
    return {{"answers", {{"may_be_unanswerable", may_abstain}}}};
  }
  int64_t max_sequence_length() const override { return windows_.max_sequence_length; }
  // A question and its context have a token each.
  int64_t least_sequence_length() const override {
    return 4 + tokenizers_.vocabulary().pair_template().separators;
  }
  bool has(std::string_view path) const override { return path == main_path(); }
  std::string_view main_path() const override { return "/answer"; }
  Json sample(const std::string& text) const override {
    return {{"question", "a"}, {"context", text}};
  }
  Tokenizers& tokenizers() override { return tokenizers_; }
  ModelLane& lane() override { return lane_; }

  std::string answer(std::string_view /*path*/, const HttpRequest& request, const RequestBody& body,
                     CallFigures& figures) override {
    constexpr int64_t kMostAnswers = 20;
    const Stopwatch watch;
    const std::string question = body.require_text("question");
    const std::string context = body.require_text("context");
    if (!has_text(question) || !has_text(context)) {
      throw ApiError(ErrorKind::kEmpty, "`question` and `context` cannot be blank");
    }
    const int64_t top = body.whole("top_n").value_or(1);
    if (top < 1 || top > kMostAnswers) {
      throw ApiError(ErrorKind::kValidation,
                     fmt::format("`top_n` must be between 1 and {}", kMostAnswers));
    }
    squad::DecodeOptions decoding = predictor_.usual_options().decode;
    decoding.text = squad::AnswerText::kOffsets;  // replies say where the answer is
    decoding.may_be_unanswerable =
        body.boolean("may_be_unanswerable", decoding.may_be_unanswerable);
    const auto work = work_of(question, context);
    if (work->features->questions_cut() > 0 && !body.boolean("truncate", truncates_)) {
      throw ApiError(ErrorKind::kValidation, fmt::format("`question` must have at most {} tokens",
                                                         windows_.max_question_length));
    }
    figures.characters += static_cast<int64_t>(question.size() + context.size());
    count(*work, 1, watch, figures);
    lane_.run(work, request, figures);
    const squad::DecodedAnswer answer =
        squad::decode_answer(*work->features, work->logits, 0, decoding);
    return answer_text(answer, context, static_cast<size_t>(top), decoding.may_be_unanswerable);
  }

 private:
  std::shared_ptr<AnswerWork> work_of(const std::string& question,
                                      const std::string& context) const {
    auto dataset = std::make_unique<squad::Dataset>(
        squad::dataset_of({.question = question, .context = context}));
    const training::ModelDescription& model = predictor_.description();
    auto features =
        std::make_unique<squad::Features>(*dataset, model.vocabulary, model.casing, windows_);
    if (features->windows().empty()) {
      throw ApiError(ErrorKind::kEmpty, "`context` has no words");
    }
    const std::vector<int32_t> lengths = squad::lengths_of(*features);
    return std::make_shared<AnswerWork>(std::move(dataset), std::move(features),
                                        std::vector<int64_t>(lengths.begin(), lengths.end()));
  }

  void compute(std::span<const Part> parts) {
    std::vector<squad::Answerer::WindowOf> windows;
    for (const Part& part : parts) {
      windows.push_back({static_cast<const AnswerWork&>(*part.work).features.get(),
                         static_cast<uint32_t>(part.index)});
    }
    const std::vector<float> all = predictor_.logits_of_batch(windows);
    auto from = all.begin();
    for (const Part& part : parts) {
      const std::span<float> place = static_cast<AnswerWork&>(*part.work).logits.of(part.index);
      std::copy_n(from, place.size(), place.begin());
      from += static_cast<ptrdiff_t>(place.size());
    }
  }

  static std::string answer_text(const squad::DecodedAnswer& answer, const std::string& context,
                                 size_t top, bool may_be_unanswerable) {
    Json list = Json::array();
    const CharacterPlaces characters(context);
    for (size_t i = 0; i < std::min(top, answer.best.size()); ++i) {
      const squad::AnswerCandidate& best = answer.best[i];
      list.push_back({{"answer", best.text},
                      {"score", best.probability},
                      {"start", characters.at(best.begin)},
                      {"end", characters.at(best.end)},
                      {"start_byte", best.begin},
                      {"end_byte", best.end},
                      {"start_logit", best.start_logit},
                      {"end_logit", best.end_logit}});
    }
    Json result = {{"answer", answer.text}, {"answers", std::move(list)}};
    if (may_be_unanswerable) result["null_odds"] = answer.null_odds;
    return json_text(result);
  }

  squad::Answerer predictor_;
  bool truncates_;
  squad::FeatureOptions windows_;
  Tokenizers tokenizers_;
  ModelLane lane_;
};

}  // namespace

std::unique_ptr<Endpoints> make_answer_endpoints(Context& context, const Path& folder,
                                                 const EndpointOptions& options, Metrics& metrics) {
  return std::make_unique<AnswerEndpoints>(context, folder, options, metrics);
}

}  // namespace onebit::serve
