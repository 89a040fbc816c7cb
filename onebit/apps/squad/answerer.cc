#include "onebit/apps/squad/answerer.h"

#include "onebit/apps/squad/squad_config.h"
#include "onebit/data/text/utf8.h"
#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/ground/base/log.h"
#include "onebit/math/model/head_names.h"
#include "onebit/training/finetune/checkpoint_heads.h"
#include "onebit/training/finetune/encoded_examples.h"
#include "onebit/training/finetune/inference.h"

namespace onebit::squad {

SpanLogits predict_logits(Context& context, QuestionAnsweringModel& model, const Features& features,
                          int64_t batch, training::DeviceBatchBuffer& buffer,
                          comm::Communicator& communicator) {
  SpanLogits logits(features);
  batches::Batch rows;
  finetune::predict_items(
      lengths_of(features), {.items = batch, .tokens = buffer.bounds().rows}, communicator,
      [&](uint32_t window) { return logits.of(window); },
      [&](std::span<const uint32_t> windows) {
        squad::build_batch(features, windows, rows);
        return model.predict(context, buffer.upload_rounded(context, rows));
      });
  return logits;
}

Dataset dataset_of(const Asked& asked) {
  Dataset dataset;
  dataset.source = "the question";
  dataset.paragraphs.push_back({"", asked.context});
  dataset.questions.push_back({.id = "asked", .text = asked.question});
  return dataset;
}

AnswererOptions prediction_of(const SquadConfig& config) {
  return {.features = config.features,
          .is_window_chosen = config.is_length_chosen,
          .decode = config.decode,
          .batch = config.prediction_batch};
}

namespace {

AnswererOptions usual_options_of(const Path& path, const training::ModelDescription& model) {
  AnswererOptions options =
      prediction_of(parse_squad_recipe(finetune::recipe_of_model(path, kSquadTask, {})));
  options.decode.may_be_unanswerable = model.may_be_unanswerable.value_or(false);
  return options;
}

}  // namespace

Answerer::Answerer(const Path& path, std::optional<DType> compute, std::optional<int> threads)
    : Answerer(std::make_unique<finetune::InferenceContext>(threads), path, compute,
               training::FileUse::kWhileUsed) {}

Answerer::Answerer(Context& context, const Path& path, std::optional<DType> compute,
                   training::FileUse file_use)
    : Answerer(std::make_unique<finetune::InferenceContext>(context), path, compute, file_use) {}

Answerer::Answerer(std::unique_ptr<finetune::InferenceContext> inference, const Path& path,
                   std::optional<DType> compute, training::FileUse file_use)
    : inference_(std::move(inference)),
      context_(inference_->context()),
      description_(training::read_model_description(training::find_model_folder(path))),
      usual_(usual_options_of(path, description_)),
      model_(description_.config, table_) {
  finetune::warn_of_pairs_without_segments(description_, path);
  weights_ = finetune::load_fine_tuned(
      context_, table_, compute, path,
      finetune::heads_of_tokens(description_.config, model::kAnswerHead), file_use);
}

FeatureOptions Answerer::window_options(const AnswererOptions& options) const {
  FeatureOptions wanted = options.features;
  wanted.use = Use::kPredict;
  wanted.threads = context_.threads();
  const int64_t positions = description_.config.max_positions;
  if (!options.is_window_chosen) wanted = within(wanted, positions);
  require(wanted.max_sequence_length <= positions,
          "a window has {} tokens, the model has {} positions: give --max-sequence-length "
          "(data.max_sequence_length) with the other sizes of windows",
          wanted.max_sequence_length, positions);
  return wanted;
}

void Answerer::reserve(batches::BatchBounds bounds) {
  ++bounds.sequences;  // upload_rounded() adds one
  model_.plan(context_, training::limits_of(bounds), {}, false);
  buffer_.emplace(context_.device(), bounds, description_.uncounted_token());
}

std::vector<float> Answerer::logits_of_batch(std::span<const WindowOf> windows) {
  batches::Batch rows;
  rows.clear();
  for (size_t i = 0; i < windows.size(); ++i) {
    const Features& features = *windows[i].features;
    features.append(features.windows()[windows[i].window], i, rows);
  }
  const int64_t asked = rows.rows();
  const Tensor logits = inference_->take_turn(
      [&] { return model_.predict(context_, buffer_->upload_rounded(context_, rows)); });
  const float* first = logits.data<float>();
  return {first, first + 2 * asked};
}

Answerer::Computed Answerer::compute(const Dataset& dataset, const AnswererOptions& options,
                                     comm::Communicator& communicator) {
  const FeatureOptions windows = window_options(options);
  auto features =
      std::make_unique<Features>(dataset, description_.vocabulary, description_.casing, windows);
  if (features->questions_cut() > 0 && communicator.rank() == 0) {
    log_warning("{} of {} questions were longer than {} tokens and were truncated",
                features->questions_cut(), dataset.questions.size(), windows.max_question_length);
  }
  batches::BatchBounds bounds = bounds_of(*features, options.batch);
  ++bounds.sequences;  // upload_rounded() adds one
  SpanLogits logits = inference_->take_turn([&] {
    model_.plan(context_, training::limits_of(bounds), {}, false);
    training::DeviceBatchBuffer buffer(context_.device(), bounds, description_.uncounted_token());
    return predict_logits(context_, model_, *features, options.batch, buffer, communicator);
  });
  return {std::move(features), std::move(logits)};
}

DecodedAnswer Answerer::answer(const Asked& asked) {
  return answer(asked, usual_);
}

DecodedAnswer Answerer::answer(const Asked& asked, const AnswererOptions& options) {
  const auto require_text = [](std::string_view text, const char* name) {
    const auto invalid = text::first_invalid_utf8(text);
    require(!invalid, "the {} is not UTF-8 from byte {} on: convert it (iconv)", name, *invalid);
    require(text.find_first_not_of(" \t\r\n") != std::string_view::npos, "the {} is empty", name);
  };
  require_text(asked.context, "context");
  require_text(asked.question, "question");
  const Dataset dataset = dataset_of(asked);
  AnswererOptions one = options;
  one.batch = 1;
  const auto communicator = comm::make_single_rank();
  const Computed computed = compute(dataset, one, *communicator);
  require(!computed.features->windows().empty(), "the context is empty: there is nothing to read");
  return squad::decode_answer(*computed.features, computed.logits, 0, options.decode);
}

}  // namespace onebit::squad
