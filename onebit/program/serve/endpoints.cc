#include "onebit/program/serve/endpoints.h"

#include <fmt/format.h>

#include <algorithm>

#include "onebit/data/formats/sentence_files.h"
#include "onebit/ground/base/error.h"
#include "onebit/math/model/head_names.h"

namespace onebit::serve {

text::Tokenizer Tokenizers::take() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return first_;
  text::Tokenizer tokenizer = std::move(free_.back());
  free_.pop_back();
  return tokenizer;
}

void Tokenizers::put_back(text::Tokenizer tokenizer, size_t text_bytes) {
  // Long words of a long text stay in it, with many times their size.
  constexpr size_t kLongBytes = size_t{128} << 10;
  if (text_bytes >= kLongBytes) return;
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(tokenizer));
}

std::vector<int32_t> Tokenizers::encode(std::string_view text) {
  text::Tokenizer tokenizer = take();
  std::vector<int32_t> ids;
  tokenizer.encode(text, ids);
  put_back(std::move(tokenizer), text.size());
  return ids;
}

std::vector<text::Piece> Tokenizers::encode_with_offsets(std::string_view text) {
  text::Tokenizer tokenizer = take();
  std::vector<text::Piece> pieces;
  // Of a long text. A list that grows has a copy from time to time.
  pieces.reserve(text.size());
  tokenizer.encode_with_offsets(text, pieces);
  put_back(std::move(tokenizer), text.size());
  return pieces;
}

std::vector<int32_t> Tokenizers::checked(const std::vector<int64_t>& ids) const {
  std::vector<int32_t> result;
  result.reserve(ids.size());
  for (const int64_t id : ids) {
    if (id < 0 || id >= vocabulary().size()) {
      throw ApiError(ErrorKind::kTokenizer,
                     fmt::format("the id {} is not in the vocabulary, which has {} tokens", id,
                                 vocabulary().size()));
    }
    result.push_back(static_cast<int32_t>(id));
  }
  return result;
}

Truncation truncation_of(const RequestBody& body, const EndpointOptions& options) {
  return {.truncates = body.boolean("truncate", options.truncates),
          .end = body.choice("truncation_direction", {"right", "left"}) == "left"
                     ? finetune::CutEnd::kLeft
                     : finetune::CutEnd::kRight};
}

finetune::TokenSequence checked_sequence(std::span<const int32_t> first,
                                         std::optional<std::span<const int32_t>> second,
                                         const text::Vocabulary& vocabulary, int64_t longest,
                                         const Truncation& truncation) {
  finetune::TokenSequence sequence =
      finetune::make_sequence(first, second, vocabulary, longest, truncation.end);
  if (sequence.is_cut && !truncation.truncates) {
    const int64_t special = second ? 2 + vocabulary.pair_template().separators : 2;
    const auto tokens =
        static_cast<int64_t>(first.size() + (second ? second->size() : 0)) + special;
    throw ApiError(
        ErrorKind::kValidation,
        fmt::format("`inputs` must have less than {} tokens. Given: {}", longest + 1, tokens));
  }
  return sequence;
}

namespace {

std::vector<int64_t> lengths_of(const std::vector<finetune::TokenSequence>& sequences) {
  std::vector<int64_t> lengths;
  for (const auto& sequence : sequences) {
    lengths.push_back(static_cast<int64_t>(sequence.tokens.size()));
  }
  return lengths;
}

}  // namespace

SequenceWork::SequenceWork(std::vector<finetune::TokenSequence> all, size_t numbers_of_part)
    : Work(lengths_of(all)),
      sequences(std::move(all)),
      results(sequences.size() * numbers_of_part),
      numbers(numbers_of_part) {}

finetune::EncodedExamples batch_of(std::span<const Part> parts,
                                   const text::Vocabulary& vocabulary) {
  std::vector<finetune::TokenSequence> sequences;
  sequences.reserve(parts.size());
  for (const Part& part : parts) {
    sequences.push_back(static_cast<const SequenceWork&>(*part.work).sequences[part.index]);
  }
  return {std::move(sequences), vocabulary};
}

void distribute(std::span<const Part> parts, std::span<const float> results) {
  for (const Part& part : parts) {
    auto& work = static_cast<SequenceWork&>(*part.work);
    std::copy_n(results.begin(), work.numbers,
                work.results.begin() + static_cast<ptrdiff_t>(part.index * work.numbers));
    results = results.subspan(work.numbers);
  }
}

void count(const Work& work, int64_t inputs, const Stopwatch& watch, CallFigures& figures) {
  figures.inputs += inputs;
  figures.tokens += work.all_tokens();
  figures.tokenization_seconds += watch.seconds();
}

std::unique_ptr<Endpoints> load_endpoints(Context& context, const Path& folder,
                                          const EndpointOptions& options, Metrics& metrics) {
  const Path model = training::find_model_folder(folder);
  const std::string architecture = training::read_model_description(model).architecture;
  const bool has_words = architecture == model::kPretrainingArchitecture ||
                         architecture == model::kMaskedWordArchitecture;
  MakeEndpoints* make = make_embedding_endpoints;
  if (architecture == model::kClassifierArchitecture) make = make_classifier_endpoints;
  if (architecture == model::kTaggerArchitecture) make = make_tagger_endpoints;
  if (architecture == model::kAnswerArchitecture) make = make_answer_endpoints;
  // Not of a CrossEncoder, whose modules.json has no module that makes vectors.
  if (has_words && !formats::read_sentence_files(model)) make = make_fill_endpoints;
  std::unique_ptr<Endpoints> endpoints = make(context, folder, options, metrics);
  require(
      endpoints->max_sequence_length() >= endpoints->least_sequence_length(),
      "{}: sequences of at most {} tokens leave no room for text beside the special tokens: give "
      "--max-sequence-length, at least {}",
      folder.string(), endpoints->max_sequence_length(), endpoints->least_sequence_length());
  return endpoints;
}

}  // namespace onebit::serve
