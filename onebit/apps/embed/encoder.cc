#include "onebit/apps/embed/encoder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <utility>

#include "onebit/apps/embed/embed_config.h"
#include "onebit/data/text/tokenizer.h"
#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/ground/base/log.h"
#include "onebit/training/finetune/checkpoint_heads.h"
#include "onebit/training/finetune/fine_tuned_classifier.h"
#include "onebit/training/finetune/inference.h"

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

constexpr int64_t kSpecialTokens = 2;

formats::SentenceFiles settle(const training::ModelDescription& description,
                              const EncoderOptions& options, const Path& path) {
  const int64_t positions = description.config.max_positions;
  formats::SentenceFiles made =
      description.sentence.value_or(formats::SentenceFiles{.normalize = false});
  const int64_t limit = made.max_sequence_length > 0 ? made.max_sequence_length : positions;
  require(
      options.max_sequence_length.has_value() || limit > kSpecialTokens,
      "{}: its sequences have {} tokens, which leaves no room for text between [CLS] and [SEP]: "
      "correct `max_seq_length` of sentence_bert_config.json or `model_max_length` of "
      "tokenizer_config.json, or give --max-sequence-length",
      path.string(), limit);
  made.max_sequence_length =
      finetune::sequence_length(options.max_sequence_length, description, path, kEmbedTask);
  if (!options.max_sequence_length) {
    made.max_sequence_length = std::min(made.max_sequence_length, limit);
  }
  if (options.pooling) made.pooling = *options.pooling;
  if (options.normalize) made.normalize = *options.normalize;
  return made;
}

int64_t length_of(const formats::SentenceFiles& files, int64_t hidden, const Path& path) {
  try {
    return formats::vector_length(files, hidden);
  } catch (const Error& error) {
    fail("{}: {}", path.string(), error.what());
  }
}

int64_t dimensions_of(const formats::SentenceFiles& files, std::optional<int64_t> given,
                      int64_t length, const Path& path) {
  const int64_t wanted = given ? *given : files.dimensions > 0 ? files.dimensions : length;
  require(wanted >= 1 && (wanted <= length || !given),
          "{}: its vectors have {} numbers, and {} are wanted", path.string(), length, wanted);
  return std::min(wanted, length);
}

std::string prompt_of(const formats::SentenceFiles& files, const EncoderOptions& options) {
  return options.prompt ? prompt_text(files, *options.prompt)
                        : prompt_named(files, {files.default_prompt});
}

}  // namespace

std::string prompt_text(const formats::SentenceFiles& files, const std::string& name) {
  std::string prompt = name;
  for (const auto& [known, text] : files.prompts) {
    if (known == name) prompt = text;
  }
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

std::vector<float> encode_texts(Context& context, const EncodeTexts& call) {
  const auto length = static_cast<size_t>(call.model.vector_length());
  std::vector<float> all(static_cast<size_t>(call.texts.size()) * length);
  const auto values_of = [&](uint32_t text) {
    return std::span(all).subspan(text * length, length);
  };
  batches::Batch rows;
  std::vector<int32_t> left_out;
  finetune::predict_items(
      call.texts.lengths(), {.items = call.batch, .tokens = call.buffer.bounds().rows},
      call.communicator, values_of, [&](std::span<const uint32_t> items) {
        finetune::build_batch(call.texts, items, rows);
        left_out.assign(items.size(), call.left_out);
        Tensor vectors =
            call.model.encode(context, call.buffer.upload_rounded(context, rows), left_out);
        if (call.encoded) call.encoded(static_cast<int64_t>(items.size()));
        return vectors;
      });
  return all;
}

Encoder::Encoder(const Path& path, const EncoderOptions& options)
    : Encoder(std::make_unique<finetune::InferenceContext>(options.threads), path, options) {}

Encoder::Encoder(Context& context, const Path& path, const EncoderOptions& options)
    : Encoder(std::make_unique<finetune::InferenceContext>(context), path, options) {}

Encoder::Encoder(std::unique_ptr<finetune::InferenceContext> inference, const Path& path,
                 const EncoderOptions& options)
    : inference_(std::move(inference)),
      context_(inference_->context()),
      description_(describe(path)),
      made_(settle(description_, options, path)),
      whole_length_(length_of(made_, description_.config.hidden_size, path)),
      prompt_(prompt_of(made_, options)),
      batch_(options.batch),
      encoded_(options.encoded),
      bounds_(finetune::inference_bounds(batch_, options.batch_tokens, made_.max_sequence_length)),
      model_(description_.config,
             {.modes = made_.pooling,
              .pools_prompt = made_.pools_prompt,
              .has_token_states = options.has_token_states},
             table_),
      dense_(context_, made_.dense),
      buffer_(context_.device(), bounds_, description_.uncounted_token()) {
  made_.dimensions = dimensions_of(made_, options.dimensions, whole_length_, path);
  normalizes_whole_ = !options.normalize && !options.dimensions;
  weights_ =
      finetune::load_fine_tuned(context_, table_, options.compute, path, {}, options.file_use);
  model_.plan(context_, training::limits_of(bounds_), {}, false);
}

std::string Encoder::description() const {
  const auto name = [](formats::SentencePooling mode) -> std::string {
    return mode == formats::SentencePooling::kFirst ? "first" : formats::word_of(mode);
  };
  std::string pooling;
  for (const formats::SentencePooling mode : made_.pooling) {
    pooling += (pooling.empty() ? "" : " and ") + name(mode);
  }
  std::string layers;
  for (const formats::DenseModule& module : made_.dense) {
    layers +=
        fmt::format(", Dense to {} ({})", module.outputs, formats::name_of(module.activation));
  }
  const bool is_cut = dimensions() < whole_length_;
  if (is_cut) layers += fmt::format(", the first {}", dimensions());
  return fmt::format("{} of at most {} tokens{}, {}", pooling, made_.max_sequence_length, layers,
                     !made_.normalize              ? "any length"
                     : is_cut && normalizes_whole_ ? "length 1 before they are cut"
                                                   : "length 1");
}

std::vector<std::string> Encoder::prompt_names() const {
  std::vector<std::string> names;
  for (const auto& [name, text] : made_.prompts) {
    if (!text.empty()) names.push_back(name);
  }
  return names;
}

int32_t Encoder::left_out_of(const std::string& prompt) const {
  if (made_.pools_prompt || prompt.empty()) return 0;
  text::Tokenizer tokenizer(description_.vocabulary, description_.casing);
  std::vector<int32_t> ids;
  tokenizer.encode(prompt, ids);
  return static_cast<int32_t>(ids.size()) + 1;  // [CLS]
}

std::vector<float> Encoder::vectors(std::vector<std::string> texts,
                                    const std::optional<std::string>& prompt) {
  return vectors(finetune::examples_of(std::move(texts)), prompt);
}

std::vector<float> Encoder::vectors(std::span<const finetune::Example> texts,
                                    const std::optional<std::string>& prompt) {
  return inference_->take_turn([&] { return vectors_of(texts, prompt ? *prompt : prompt_); });
}

std::vector<float> Encoder::vectors_of(std::span<const finetune::Example> texts,
                                       const std::string& prompt) {
  std::vector<finetune::Example> prompted;
  if (!prompt.empty()) {
    prompted.assign(texts.begin(), texts.end());
    for (finetune::Example& one : prompted) one.text.insert(0, prompt);
    texts = prompted;
  }
  const finetune::EncodedExamples encoded(texts, description_.vocabulary, description_.casing,
                                          {.max_sequence_length = made_.max_sequence_length,
                                           .has_pairs = false,
                                           .threads = context_.threads()});
  cut_ += encoded.cut();
  const auto communicator = comm::make_single_rank();
  std::vector<float> whole = dense_.apply(encode_texts(context_, {.model = model_,
                                                                  .texts = encoded,
                                                                  .batch = batch_,
                                                                  .buffer = buffer_,
                                                                  .communicator = *communicator,
                                                                  .left_out = left_out_of(prompt),
                                                                  .encoded = encoded_}));
  require_finite(whole);
  const auto kept = static_cast<size_t>(dimensions());
  std::vector<float> all(texts.size() * kept);
  for (size_t i = 0; i < texts.size(); ++i) {
    float *vector = whole.data() + i * static_cast<size_t>(whole_length_),
          *part = all.data() + i * kept;
    if (made_.normalize && normalizes_whole_) to_unit_length(vector, whole_length_, vector);
    std::copy_n(vector, kept, part);
    if (made_.normalize && !normalizes_whole_) to_unit_length(part, dimensions(), part);
  }
  return all;
}

namespace {

batches::Batch all_rows(const finetune::EncodedExamples& texts) {
  std::vector<uint32_t> all(static_cast<size_t>(texts.size()));
  std::iota(all.begin(), all.end(), 0);
  batches::Batch rows;
  finetune::build_batch(texts, all, rows);
  return rows;
}

std::vector<float> first_numbers(const Tensor& tensor, int64_t count) {
  const std::span<const float> numbers(tensor.data<float>(), static_cast<size_t>(count));
  require_finite(numbers);
  return {numbers.begin(), numbers.end()};
}

}  // namespace

std::vector<float> Encoder::vectors_of_batch(const finetune::EncodedExamples& texts,
                                             std::span<const int32_t> left_out) {
  batches::Batch rows = all_rows(texts);
  return inference_->take_turn([&] {
    const Tensor vectors =
        model_.encode(context_, buffer_.upload_rounded(context_, rows), left_out);
    std::vector<float> whole =
        dense_.apply(first_numbers(vectors, texts.size() * model_.vector_length()));
    require_finite(whole);
    return whole;
  });
}

std::vector<float> Encoder::token_states_of_batch(const finetune::EncodedExamples& texts) {
  batches::Batch rows = all_rows(texts);
  const int64_t tokens = rows.rows();
  const Tensor states = inference_->take_turn(
      [&] { return model_.token_states(context_, buffer_.upload_rounded(context_, rows)); });
  return first_numbers(states, tokens * hidden());
}

int64_t Encoder::for_each_vector(TextReader& reader,
                                 const std::function<void(std::span<const float>)>& add) {
  const auto numbers = static_cast<size_t>(dimensions());
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

EncodingProgress::EncodingProgress() : is_terminal_(isatty(STDERR_FILENO) != 0) {}

EncodingProgress::~EncodingProgress() {
  if (is_open_) show("\r\033[K");
}

void EncodingProgress::add(int64_t texts) {
  texts_ += texts;
  if (since_shown_.seconds() < (is_terminal_ ? 1 : 30)) return;
  since_shown_.restart();
  if (is_terminal_) {
    show(fmt::format("\r{}\033[K", text()));
    std::fflush(stderr);
    is_open_ = true;
  } else {
    log_info("{}", text());
  }
}

std::string EncodingProgress::text() const {
  return fmt::format("{} texts, {:.1f} per second", texts_,
                     static_cast<double>(texts_) / std::max(since_start_.seconds(), 1e-9));
}

}  // namespace onebit::embed
