// Trained models from their folders: texts in, arrays out.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "onebit/apps/classify/classifier.h"
#include "onebit/apps/embed/encoder.h"
#include "onebit/apps/pretrain/fill_mask.h"
#include "onebit/apps/squad/answerer.h"
#include "onebit/apps/tag/tagger.h"
#include "onebit/ground/base/parallel_for.h"
#include "onebit/training/commands/device_option.h"
#include "python/src/arrays.h"

namespace onebit::python {
namespace {

using namespace nb::literals;

using Matrix = NumpyArray<float, 2>;

// "auto" is absent: the type of the device.
std::optional<DType> compute_type(const std::string& word) {
  if (word == "auto") return std::nullopt;
  for (const DType type : {DType::kF32, DType::kBF16, training::kInt8}) {
    if (word == training::compute_name(type)) return type;
  }
  fail("compute is \"f32\", \"bf16\", \"int8\" or \"auto\", not \"{}\"", word);
}

int thread_count(std::optional<int> threads) {
  if (!threads) return available_threads();
  require(*threads >= 1 && *threads <= commands::kMaxThreads,
          "threads must be at least 1 and at most {}, not {}", commands::kMaxThreads, *threads);
  return *threads;
}

// The tokens of a text, with [CLS] and [SEP].
std::optional<int64_t> checked_length(std::optional<int64_t> length) {
  constexpr int64_t kLeast = 3, kMost = 65536;
  require(!length || (*length >= kLeast && *length <= kMost),
          "max_sequence_length must be between {} and {}, not {}", kLeast, kMost,
          length.value_or(0));
  return length;
}

std::optional<int64_t> checked_stride(std::optional<int64_t> stride) {
  require(!stride || *stride >= 1, "stride must be at least 1, not {}", stride.value_or(0));
  return stride;
}

// The texts that are computed at once: memory is reserved for all of them.
int64_t checked_batch(int64_t batch_size) {
  constexpr int64_t kMost = 65536;
  require(batch_size >= 1 && batch_size <= kMost,
          "batch_size must be at least 1 and at most {}, not {}", kMost, batch_size);
  return batch_size;
}

// Computes without the interpreter's lock.
template <typename Work>
auto compute(const Work& work) {
  const nb::gil_scoped_release release;
  return work();
}

class Encoder {
 public:
  struct Options {
    std::optional<int64_t> max_sequence_length;
    std::optional<std::string> pooling;
    std::optional<bool> normalize;
    std::optional<int64_t> dimensions;
    std::optional<std::string> prompt;
    int64_t batch_size;
    std::string compute;
  };
  Encoder(const std::string& folder, const Options& given, std::optional<int> threads) {
    embed::EncoderOptions options;
    options.max_sequence_length = checked_length(given.max_sequence_length);
    if (given.pooling) options.pooling = formats::pooling_modes(*given.pooling);
    options.normalize = given.normalize;
    options.dimensions = given.dimensions;
    options.prompt = given.prompt;
    options.batch = checked_batch(given.batch_size);
    options.compute = compute_type(given.compute);
    options.threads = thread_count(threads);
    compute([&] { encoder_ = std::make_unique<embed::Encoder>(folder, options); });
  }

  Matrix encode(const std::vector<std::string>& texts) {
    std::vector<float> vectors =
        compute([&] { return texts.empty() ? std::vector<float>() : encoder_->vectors(texts); });
    const size_t shape[] = {texts.size(), static_cast<size_t>(dimensions())};
    return array_of(std::move(vectors), shape);
  }
  int64_t dimensions() const { return encoder_->dimensions(); }
  std::string description() const { return encoder_->description(); }
  std::vector<std::string> prompt_names() const { return encoder_->prompt_names(); }
  int64_t truncated() const { return encoder_->cut(); }

 private:
  std::unique_ptr<embed::Encoder> encoder_;
};

class Classifier {
 public:
  Classifier(const std::string& folder, std::optional<int64_t> max_sequence_length,
             int64_t batch_size, const std::string& type, std::optional<int> threads) {
    const classify::ClassifierOptions options{
        .max_sequence_length = checked_length(max_sequence_length),
        .batch = checked_batch(batch_size),
        .compute = compute_type(type),
        .threads = thread_count(threads)};
    compute([&] { predictor_ = std::make_unique<classify::Classifier>(folder, options); });
  }

  Matrix logits(const std::vector<std::string>& texts,
                const std::optional<std::vector<std::string>>& pairs) {
    std::vector<float> outputs = compute([&] {
      const auto examples =
          pairs ? finetune::examples_of(texts, *pairs) : finetune::examples_of(texts);
      return examples.empty() ? std::vector<float>()
                              : predictor_->outputs(examples, pairs.has_value());
    });
    const size_t shape[] = {texts.size(), labels().size()};
    return array_of(std::move(outputs), shape);
  }
  const std::vector<std::string>& labels() const { return predictor_->labels(); }
  std::string problem() const { return std::string(classify::name_of(predictor_->problem())); }

 private:
  std::unique_ptr<classify::Classifier> predictor_;
};

class Tagger {
 public:
  Tagger(const std::string& folder, std::optional<int64_t> max_sequence_length,
         std::optional<int64_t> stride, int64_t batch_size, const std::string& type,
         std::optional<int> threads) {
    const tag::TaggerOptions options{.max_sequence_length = checked_length(max_sequence_length),
                                     .stride = checked_stride(stride),
                                     .batch = checked_batch(batch_size),
                                     .compute = compute_type(type),
                                     .threads = thread_count(threads)};
    compute([&] { predictor_ = std::make_unique<tag::Tagger>(folder, options); });
  }

  // [words of all sentences, labels]
  Matrix logits(const std::vector<std::vector<std::string>>& sentences) {
    size_t words = 0;
    std::vector<tag::Sentence> read(sentences.size());
    for (size_t i = 0; i < sentences.size(); ++i) {
      for (const std::string& word : sentences[i]) read[i].add_word(word);
      words += sentences[i].size();
    }
    std::vector<float> outputs =
        compute([&] { return words == 0 ? std::vector<float>() : predictor_->outputs(read); });
    const size_t shape[] = {words, labels().size()};
    return array_of(std::move(outputs), shape);
  }
  const std::vector<std::string>& labels() const { return predictor_->labels(); }

 private:
  std::unique_ptr<tag::Tagger> predictor_;
};

class QuestionAnswering {
 public:
  using Candidate = std::tuple<std::string, double, double, double>;

  QuestionAnswering(const std::string& folder, const std::string& type,
                    std::optional<int> threads) {
    compute([&] {
      predictor_ =
          std::make_unique<squad::Answerer>(folder, compute_type(type), thread_count(threads));
    });
  }

  // The answer, and the candidates: (text, probability, logit of the start, logit of the end).
  std::pair<std::string, std::vector<Candidate>> answer(const std::string& question,
                                                        const std::string& text,
                                                        std::optional<bool> may_abstain) {
    squad::AnswererOptions options = predictor_->usual_options();
    options.decode.may_be_unanswerable = may_abstain.value_or(options.decode.may_be_unanswerable);
    const squad::DecodedAnswer answer = compute(
        [&] { return predictor_->answer({.question = question, .context = text}, options); });
    std::vector<Candidate> candidates;
    for (const auto& best : answer.best) {
      candidates.emplace_back(best.text, best.probability, best.start_logit, best.end_logit);
    }
    return {answer.text, std::move(candidates)};
  }

 private:
  std::unique_ptr<squad::Answerer> predictor_;
};

class FillMask {
 public:
  using Candidate = std::tuple<std::string, int32_t, double>;

  FillMask(const std::string& folder, std::optional<int> threads) {
    compute(
        [&] { filler_ = std::make_unique<pretrain::MaskFiller>(folder, thread_count(threads)); });
  }
  // For each mask the candidates: (token, id, probability).
  std::vector<std::vector<Candidate>> fill(const std::string& text, int64_t top) {
    require(top >= 1, "top must be at least 1, not {}", top);
    const auto masks = compute([&] { return filler_->fill(text, top); });
    std::vector<std::vector<Candidate>> result;
    for (const auto& mask : masks) {
      auto& candidates = result.emplace_back();
      for (const auto& best : mask.candidates) {
        candidates.emplace_back(best.token, best.id, best.probability);
      }
    }
    return result;
  }

 private:
  std::unique_ptr<pretrain::MaskFiller> filler_;
};

}  // namespace

void bind_models(nb::module_& module) {
  nb::class_<Encoder>(module, "Encoder")
      .def(
          "__init__",
          [](Encoder* self, const std::string& folder, std::optional<int64_t> length,
             std::optional<std::string> pooling, std::optional<bool> normalize,
             std::optional<int64_t> dimensions, std::optional<std::string> prompt,
             int64_t batch_size, std::string compute, std::optional<int> threads) {
            new (self) Encoder(folder,
                               {length, std::move(pooling), normalize, dimensions,
                                std::move(prompt), batch_size, std::move(compute)},
                               threads);
          },
          "folder"_a, "max_sequence_length"_a.none(), "pooling"_a.none(), "normalize"_a.none(),
          "dimensions"_a.none(), "prompt"_a.none(), "batch_size"_a, "compute"_a, "threads"_a.none())
      .def("encode", &Encoder::encode, "texts"_a)
      .def_prop_ro("dimensions", &Encoder::dimensions)
      .def_prop_ro("description", &Encoder::description)
      .def_prop_ro("prompt_names", &Encoder::prompt_names)
      .def_prop_ro("truncated", &Encoder::truncated);
  nb::class_<Classifier>(module, "Classifier")
      .def(nb::init<const std::string&, std::optional<int64_t>, int64_t, const std::string&,
                    std::optional<int>>(),
           "folder"_a, "max_sequence_length"_a.none(), "batch_size"_a, "compute"_a,
           "threads"_a.none())
      .def("logits", &Classifier::logits, "texts"_a, "text_pairs"_a.none())
      .def_prop_ro("labels", &Classifier::labels)
      .def_prop_ro("problem", &Classifier::problem);
  nb::class_<Tagger>(module, "Tagger")
      .def(nb::init<const std::string&, std::optional<int64_t>, std::optional<int64_t>, int64_t,
                    const std::string&, std::optional<int>>(),
           "folder"_a, "max_sequence_length"_a.none(), "stride"_a.none(), "batch_size"_a,
           "compute"_a, "threads"_a.none())
      .def("logits", &Tagger::logits, "sentences"_a)
      .def_prop_ro("labels", &Tagger::labels);
  nb::class_<QuestionAnswering>(module, "QuestionAnswering")
      .def(nb::init<const std::string&, const std::string&, std::optional<int>>(), "folder"_a,
           "compute"_a, "threads"_a.none())
      .def("answer", &QuestionAnswering::answer, "question"_a, "text"_a, "may_abstain"_a.none());
  nb::class_<FillMask>(module, "FillMask")
      .def(nb::init<const std::string&, std::optional<int>>(), "folder"_a, "threads"_a.none())
      .def("fill", &FillMask::fill, "text"_a, "top"_a);
}

}  // namespace onebit::python
