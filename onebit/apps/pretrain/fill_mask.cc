#include "onebit/apps/pretrain/fill_mask.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "onebit/apps/pretrain/pretraining_heads.h"
#include "onebit/data/text/utf8.h"
#include "onebit/training/training/device_batch.h"

namespace onebit::pretrain {
namespace {

// [CLS] text [SEP] as one sequence whose masked rows are the [MASK] tokens.
batches::Batch batch_of(const std::vector<int32_t>& text_ids, const text::Vocabulary& vocabulary) {
  batches::Batch batch;
  batch.tokens = {vocabulary.cls_id()};
  batch.tokens.insert(batch.tokens.end(), text_ids.begin(), text_ids.end());
  batch.tokens.push_back(vocabulary.sep_id());
  const int32_t rows = static_cast<int32_t>(batch.tokens.size());
  batch.segments.assign(batch.tokens.size(), 0);
  batch.positions.resize(batch.tokens.size());
  std::iota(batch.positions.begin(), batch.positions.end(), 0);
  batch.sequence_starts = {0, rows};
  batch.row_keys.assign(batch.positions.begin(), batch.positions.end());
  for (int32_t row = 0; row < rows; ++row) {
    if (batch.tokens[static_cast<size_t>(row)] == vocabulary.mask_id()) {
      batch.labelled_rows.push_back(row);
      batch.row_labels.push_back(-1);
    }
  }
  return batch;
}

std::string text_of(int32_t id, const text::Tokenizer& tokenizer) {
  std::string text = tokenizer.decode({&id, 1}, false);
  text.erase(0, text.find_first_not_of(' '));
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

FilledMask best_of(const float* logits, const text::Tokenizer& tokenizer, int64_t candidates) {
  const text::Vocabulary& vocabulary = tokenizer.vocabulary();
  const int32_t size = vocabulary.size();
  const float largest = *std::max_element(logits, logits + size);
  double sum = 0;
  for (int32_t id = 0; id < size; ++id) sum += std::exp(static_cast<double>(logits[id] - largest));
  std::vector<int32_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  const auto end = order.begin() + std::min<int64_t>(candidates, size);
  std::partial_sort(order.begin(), end, order.end(), [&](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  FilledMask filled;
  for (auto id = order.begin(); id != end; ++id) {
    filled.candidates.push_back(
        {.token = vocabulary.token(*id),
         .text = text_of(*id, tokenizer),
         .id = *id,
         .probability = std::exp(static_cast<double>(logits[*id] - largest)) / sum});
  }
  return filled;
}

}  // namespace

MaskFiller::MaskFiller(const Path& path, std::optional<int> threads)
    : MaskFiller(std::make_unique<finetune::InferenceContext>(threads), path) {}

MaskFiller::MaskFiller(Context& context, const Path& path)
    : MaskFiller(std::make_unique<finetune::InferenceContext>(context), path) {}

MaskFiller::MaskFiller(std::unique_ptr<finetune::InferenceContext> inference, const Path& path)
    : inference_(std::move(inference)),
      context_(inference_->context()),
      description_(training::read_model_description(training::find_model_folder(path))),
      model_(description_.config, table_, model::PreTrainingHeads::kMaskedWords),
      tokenizer_(description_.vocabulary, description_.casing) {
  const Path folder = training::find_model_folder(path);
  require_masked_words(folder);
  weights_ = training::load_for_inference(context_, table_, DType::kF32, folder,
                                          all_present(model::PreTrainingHeads::kMaskedWords));
}

std::vector<FilledMask> MaskFiller::fill(std::string_view text, int64_t candidates) {
  return inference_->take_turn([&] { return filled(text, candidates); });
}

std::vector<FilledMask> MaskFiller::filled(std::string_view text, int64_t candidates) {
  const auto invalid = text::first_invalid_utf8(text);
  require(!invalid, "the text is not UTF-8 from byte {} on: convert it (iconv)", *invalid);
  std::vector<int32_t> ids;
  tokenizer_.encode(text, ids);
  const batches::Batch batch = batch_of(ids, *description_.vocabulary);
  require(!batch.labelled_rows.empty(),
          "the text has no {0}: write {0}, between spaces, where a word is to be predicted",
          description_.vocabulary->names().mask);
  require(batch.rows() <= description_.config.max_positions,
          "the text has {} tokens, the model has {} positions: shorten it", batch.rows(),
          description_.config.max_positions);
  const batches::BatchBounds bounds{.sequences = 1,
                                    .rows = batch.rows(),
                                    .longest = batch.rows(),
                                    .labelled_rows = batch.labelled()};
  model_.plan(context_, training::limits_of(bounds), {}, false);
  training::DeviceBatchBuffer buffer(context_.device(), bounds, description_.uncounted_token());
  const Tensor logits = model_.predict_masked(context_, buffer.upload(context_, batch));
  std::vector<FilledMask> masks;
  for (int64_t mask = 0; mask < batch.labelled(); ++mask) {
    masks.push_back(best_of(logits.data<float>() + mask * description_.config.vocab_size,
                            tokenizer_, candidates));
  }
  return masks;
}

}  // namespace onebit::pretrain
