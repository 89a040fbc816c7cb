// What a served model answers: each kind of model has endpoints of its own, and all share the way
// from texts to tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/data/text/tokenizer.h"
#include "onebit/ground/base/clock.h"
#include "onebit/math/device/context.h"
#include "onebit/program/serve/model_lane.h"
#include "onebit/program/serve/request_body.h"
#include "onebit/training/finetune/encoded_examples.h"
#include "onebit/training/training/model_folder.h"

namespace onebit::serve {

// A server runs for long, and whoever installs another model should not have to know that.
inline constexpr training::FileUse kFileUse = training::FileUse::kToLoad;

struct EndpointOptions {
  std::optional<DType> compute = DType::kF32;  // absent: the type of the device
  std::optional<int64_t> max_sequence_length = {};
  int64_t max_inputs = 32;
  bool truncates = true;  // where a request does not say
  QueueLimits queue = {};
};

// Tokenizes on any number of threads, which take turns with tokenizers that share a vocabulary.
class Tokenizers {
 public:
  explicit Tokenizers(const training::ModelDescription& model)
      : first_(model.vocabulary, model.casing) {}

  const text::Vocabulary& vocabulary() const { return first_.vocabulary(); }
  std::vector<int32_t> encode(std::string_view text);
  std::vector<text::Piece> encode_with_offsets(std::string_view text);
  // Error: kTokenizer for an id that the vocabulary does not have.
  std::vector<int32_t> checked(const std::vector<int64_t>& ids) const;

 private:
  text::Tokenizer take();
  void put_back(text::Tokenizer tokenizer, size_t text_bytes);

  text::Tokenizer first_;
  std::mutex mutex_;
  std::vector<text::Tokenizer> free_;
};

// What a request says about truncation.
struct Truncation {
  bool truncates = true;
  finetune::CutEnd end = finetune::CutEnd::kRight;
};
Truncation truncation_of(const RequestBody& body, const EndpointOptions& options);

// What the tokens of a text may be at most, and the error that says so.
finetune::TokenSequence checked_sequence(std::span<const int32_t> first,
                                         std::optional<std::span<const int32_t>> second,
                                         const text::Vocabulary& vocabulary, int64_t longest,
                                         const Truncation& truncation);

// Sequences that one batch computes, for encoders and classifiers.
struct SequenceWork : Work {
  SequenceWork(std::vector<finetune::TokenSequence> all, size_t numbers);
  std::vector<finetune::TokenSequence> sequences;
  std::vector<float> results;  // [parts, numbers]
  size_t numbers;              // of a part

  std::span<const float> of(size_t part) const {
    return std::span(results).subspan(part * numbers, numbers);
  }
};
// The sequences of a batch, and the place of its results.
finetune::EncodedExamples batch_of(std::span<const Part> parts, const text::Vocabulary& vocabulary);
void distribute(std::span<const Part> parts, std::span<const float> results);

// Adds a work's tokens, and the time since its request's texts were there.
void count(const Work& work, int64_t inputs, const Stopwatch& watch, CallFigures& figures);

class Endpoints {
 public:
  virtual ~Endpoints() = default;
  // "embedding", "classifier", "reranker", "tagger", "answers", "masked words"
  virtual std::string kind() const = 0;
  virtual Json model_type() const = 0;  // of /info
  virtual int64_t max_sequence_length() const = 0;
  // With fewer tokens a sequence of this kind has no room for text.
  virtual int64_t least_sequence_length() const { return 3; }
  virtual bool has(std::string_view path) const = 0;
  virtual std::string_view main_path() const = 0;  // which `POST /` means
  // The body of a request for the main path that asks about one text.
  virtual Json sample(const std::string& text) const = 0;
  // The JSON text of the reply of an endpoint that it has. Throws ApiError and ClientGone.
  virtual std::string answer(std::string_view path, const HttpRequest& request,
                             const RequestBody& body, CallFigures& figures) = 0;
  virtual Tokenizers& tokenizers() = 0;
  virtual ModelLane& lane() = 0;
};

// Loads the model of a folder, whose kind decides. The context must outlive the result. Errors: as
// the program's commands for such models have, and sequences without room for text.
std::unique_ptr<Endpoints> load_endpoints(Context& context, const Path& folder,
                                          const EndpointOptions& options, Metrics& metrics);

// The same for a model of a known kind.
using MakeEndpoints = std::unique_ptr<Endpoints>(Context& context, const Path& folder,
                                                 const EndpointOptions& options, Metrics& metrics);
MakeEndpoints make_embedding_endpoints, make_classifier_endpoints, make_tagger_endpoints,
    make_answer_endpoints, make_fill_endpoints;

}  // namespace onebit::serve
