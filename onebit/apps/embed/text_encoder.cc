#include "onebit/apps/embed/text_encoder.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/training/finetune/checkpoint_heads.h"
#include "onebit/training/finetune/file_parts.h"
#include "onebit/training/finetune/fine_tuned_classifier.h"
#include "onebit/training/finetune/gathered_items.h"

namespace onebit::embed {

namespace {

constexpr double kMinLength = 1e-12;

double product(const float* a, const float* b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += double{a[i]} * double{b[i]};
  return sum;
}

// NaN stays NaN.
double length_of(const float* vector, int64_t hidden) {
  const double length = std::sqrt(product(vector, vector, hidden));
  return length < kMinLength ? kMinLength : length;
}

}  // namespace

float to_unit_length(const float* vector, int64_t hidden, float* unit) {
  const double length = length_of(vector, hidden);
  for (int64_t i = 0; i < hidden; ++i) unit[i] = static_cast<float>(double{vector[i]} / length);
  return static_cast<float>(length);
}

void to_unit_length_backward(const UnitVectorBackward& call) {
  const double along = product(call.grad_unit, call.unit, call.hidden);
  for (int64_t i = 0; i < call.hidden; ++i) {
    const double across = double{call.grad_unit[i]} - along * double{call.unit[i]};
    call.grad[i] = static_cast<float>(across / double{call.length});
  }
}

namespace {

void require_finite(std::span<const float> numbers) {
  require(
      std::all_of(numbers.begin(), numbers.end(), [](float value) { return std::isfinite(value); }),
      "the model gives vectors with numbers that are not finite: its values are damaged, or "
      "its training diverged");
}

constexpr int64_t kBatchesOfPart = 64;
constexpr size_t kBytesOfPart = size_t{16} << 20;

training::ModelDescription describe(const Path& path) {
  const Path folder = training::find_model_folder(path);
  training::ModelDescription description = training::read_model_description(folder);
  description.sentence = formats::read_sentence_files(folder);
  return description;
}

formats::SentenceFiles settle(const training::ModelDescription& description,
                              const TextEncoderOptions& options, const Path& path) {
  const int64_t positions = description.config.max_positions;
  formats::SentenceFiles made =
      description.sentence.value_or(formats::SentenceFiles{.normalize = false});
  const int64_t limit = made.max_sequence_length > 0 ? made.max_sequence_length : positions;
  made.max_sequence_length = finetune::sequence_length(
      options.max_sequence_length, description.sentence ? limit : finetune::kUsualLength,
      description, path);
  if (options.pooling) made.pooling = in_files(*options.pooling);
  if (options.normalize) made.normalize = *options.normalize;
  return made;
}

std::string prompt_of(const formats::SentenceFiles& files, const TextEncoderOptions& options) {
  return options.prompt ? prompt_text(files, *options.prompt)
                        : prompt_named(files, {files.default_prompt});
}

}  // namespace

std::string prompt_text(const formats::SentenceFiles& files, const std::string& name) {
  std::string prompt = name;
  for (const auto& [known, text] : files.prompts) {
    if (known == name) prompt = text;
  }
  require(
      prompt.empty() || files.pools_prompt,
      "the model's Pooling has include_prompt false, which leaves the tokens of a prompt out of "
      "the mean; onebit does not do that");
  return prompt;
}

std::string prompt_named(const formats::SentenceFiles& files,
                         const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    for (const auto& [known, text] : files.prompts) {
      if (known == name && !text.empty()) return prompt_text(files, name);
    }
  }
  return "";
}

formats::SentencePooling in_files(Pooling pooling) {
  return pooling == Pooling::kMean ? formats::SentencePooling::kMean
                                   : formats::SentencePooling::kFirst;
}

Pooling in_model(formats::SentencePooling pooling) {
  return pooling == formats::SentencePooling::kMean ? Pooling::kMean : Pooling::kFirst;
}

std::vector<float> encode_texts(Context& context, EmbeddingModel& model,
                                const finetune::EncodedExamples& texts, int64_t batch,
                                training::DeviceBatchBuffer& buffer,
                                comm::Communicator& communicator,
                                const std::function<void(int64_t texts)>& encoded) {
  const auto hidden = static_cast<size_t>(model.hidden());
  std::vector<float> all(static_cast<size_t>(texts.size()) * hidden);
  const auto values_of = [&](uint32_t text) {
    return std::span(all).subspan(text * hidden, hidden);
  };
  batches::Batch rows;
  finetune::predict_items(
      texts.lengths(), batch, communicator, values_of, [&](std::span<const uint32_t> items) {
        finetune::build_batch(texts, items, rows);
        Tensor vectors = model.encode(context, buffer.upload_rounded(context, rows));
        if (encoded) encoded(static_cast<int64_t>(items.size()));
        return vectors;
      });
  return all;
}

TextEncoder::TextEncoder(Context& context, const Path& path, const TextEncoderOptions& options)
    : context_(context),
      description_(describe(path)),
      made_(settle(description_, options, path)),
      prompt_(prompt_of(made_, options)),
      batch_(options.batch),
      encoded_(options.encoded),
      bounds_{.sequences = batch_ + 1,  // upload_rounded() adds one
              .rows = std::max(options.batch_tokens.value_or(batch_ * made_.max_sequence_length),
                               made_.max_sequence_length),
              .longest = made_.max_sequence_length},
      model_(description_.config, in_model(made_.pooling), table_),
      buffer_(context.device(), bounds_) {
  weights_ = finetune::load_fine_tuned(context, table_, options.compute, path, {});
  model_.plan(context_, training::limits_of(bounds_), {}, false);
}

std::string TextEncoder::description() const {
  return fmt::format("{} of at most {} tokens, {}",
                     made_.pooling == formats::SentencePooling::kMean ? "mean" : "first",
                     made_.max_sequence_length, made_.normalize ? "length 1" : "any length");
}

std::vector<std::string> TextEncoder::prompt_names() const {
  std::vector<std::string> names;
  for (const auto& [name, text] : made_.prompts) {
    if (!text.empty()) names.push_back(name);
  }
  return names;
}

std::vector<float> TextEncoder::vectors(std::span<const finetune::Example> texts) {
  std::vector<finetune::Example> prompted;
  if (!prompt_.empty()) {
    prompted.assign(texts.begin(), texts.end());
    for (finetune::Example& one : prompted) one.text.insert(0, prompt_);
    texts = prompted;
  }
  const finetune::EncodedExamples encoded(texts, description_.vocabulary, description_.casing,
                                          {.max_sequence_length = made_.max_sequence_length,
                                           .has_pairs = false,
                                           .threads = context_.threads()});
  cut_ += encoded.cut();
  const auto communicator = comm::make_single_rank();
  std::vector<float> all =
      encode_texts(context_, model_, encoded, batch_, buffer_, *communicator, encoded_);
  require_finite(all);
  if (!made_.normalize) return all;
  const auto numbers = static_cast<size_t>(hidden());
  for (size_t first = 0; first < all.size(); first += numbers) {
    to_unit_length(all.data() + first, hidden(), all.data() + first);
  }
  return all;
}

std::vector<float> TextEncoder::vectors_of_batch(const finetune::EncodedExamples& texts) {
  std::vector<uint32_t> all(static_cast<size_t>(texts.size()));
  std::iota(all.begin(), all.end(), 0);
  batches::Batch rows;
  finetune::build_batch(texts, all, rows);
  const Tensor vectors = model_.encode(context_, buffer_.upload_rounded(context_, rows));
  const float* first = vectors.data<float>();
  const std::span<const float> numbers(first, all.size() * static_cast<size_t>(hidden()));
  require_finite(numbers);
  return {numbers.begin(), numbers.end()};
}

int64_t TextEncoder::for_each_vector(TextReader& reader,
                                     const std::function<void(std::span<const float>)>& add) {
  const auto numbers = static_cast<size_t>(hidden());
  int64_t texts = 0;
  finetune::for_each_part<finetune::Example>(
      {.items = static_cast<size_t>(kBatchesOfPart * batch_), .size = kBytesOfPart},
      [&](finetune::Example& example) { return reader.next(example.text); },
      [](const finetune::Example& example) { return example.text.size(); },
      [&](std::span<const finetune::Example> part) {
        const std::vector<float> all = vectors(part);
        for (size_t i = 0; i < part.size(); ++i) {
          add(std::span(all).subspan(i * numbers, numbers));
        }
        texts += static_cast<int64_t>(part.size());
      });
  return texts;
}

}  // namespace onebit::embed
