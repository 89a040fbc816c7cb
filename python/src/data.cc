// Stores of pre-training data and the batches that a run makes of them.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "onebit/apps/pretrain/pretraining_data.h"
#include "onebit/data/corpus/token_store.h"
#include "onebit/exchange/engine/batch_sizes.h"
#include "onebit/ground/base/json.h"
#include "onebit/training/commands/device_option.h"
#include "python/src/arrays.h"
#include "python/src/recipes.h"

namespace onebit::python {
namespace {

using namespace nb::literals;

constexpr int kMostRanks = 65536;
constexpr int64_t kNoLabel = -100;  // of PyTorch's and transformers' losses

// The ids of a document, and the offset of every sentence in them with the number of ids last.
std::pair<NumpyArray<int32_t, 1>, NumpyArray<int64_t, 1>> document_of(
    const corpus::TokenStore& store, uint64_t document) {
  require(document < store.documents(), "there is no document {}: the store has {}", document,
          store.documents());
  std::vector<int32_t> ids;
  std::vector<int64_t> offsets;
  {
    const nb::gil_scoped_release release;
    const uint64_t first = store.document_begin(document),
                   last = store.document_begin(document + 1);
    const uint64_t begin = store.sentence_begin(first), end = store.sentence_begin(last);
    ids.resize(end - begin);
    store.copy_tokens(begin, end - begin, ids.data());
    for (uint64_t sentence = first; sentence <= last; ++sentence) {
      offsets.push_back(static_cast<int64_t>(store.sentence_begin(sentence) - begin));
    }
  }
  return {array_of(std::move(ids)), array_of(std::move(offsets))};
}

std::vector<std::string> tokens_of(const text::Vocabulary& vocabulary) {
  std::vector<std::string> tokens;
  for (int32_t id = 0; id < vocabulary.size(); ++id) tokens.push_back(vocabulary.token(id));
  return tokens;
}

// [sequences, length] of `rest`, then filled row by row.
class PaddedRows {
 public:
  PaddedRows(const batches::Batch& batch, size_t length)
      : batch_(batch), shape_{static_cast<size_t>(batch.sequences()), length} {}

  template <typename Value>
  NumpyArray<int64_t, 2> of(int64_t rest, const Value& value) const {
    std::vector<int64_t> rows(shape_[0] * shape_[1], rest);
    for (size_t sequence = 0; sequence < shape_[0]; ++sequence) {
      const int32_t begin = batch_.sequence_starts[sequence];
      const int32_t end = batch_.sequence_starts[sequence + 1];
      for (int32_t row = begin; row < end; ++row) {
        rows[sequence * shape_[1] + static_cast<size_t>(row - begin)] =
            value(static_cast<size_t>(row));
      }
    }
    return array_of(std::move(rows), shape_);
  }

 private:
  const batches::Batch& batch_;
  size_t shape_[2];
};

size_t longest_in(const batches::Batch& batch) {
  int32_t longest = 0;
  for (size_t i = 1; i < batch.sequence_starts.size(); ++i) {
    longest = std::max(longest, batch.sequence_starts[i] - batch.sequence_starts[i - 1]);
  }
  return static_cast<size_t>(longest);
}

template <typename T>
NumpyArray<int64_t, 1> wide(const std::vector<T>& values) {
  return array_of(std::vector<int64_t>(values.begin(), values.end()));
}

nb::dict padded(const batches::Batch& batch, int32_t pad_id) {
  std::vector<int64_t> labels(batch.tokens.size(), kNoLabel);
  for (size_t i = 0; i < batch.labelled_rows.size(); ++i) {
    labels[static_cast<size_t>(batch.labelled_rows[i])] = batch.row_labels[i];
  }
  const PaddedRows rows(batch, longest_in(batch));
  nb::dict arrays;
  arrays["input_ids"] = rows.of(pad_id, [&](size_t row) { return batch.tokens[row]; });
  arrays["token_type_ids"] = rows.of(0, [&](size_t row) { return batch.segments[row]; });
  arrays["attention_mask"] = rows.of(0, [](size_t) { return 1; });
  arrays["labels"] = rows.of(kNoLabel, [&](size_t row) { return labels[row]; });
  return arrays;
}

nb::dict packed(batches::Batch& batch) {
  nb::dict arrays;
  arrays["input_ids"] = array_of(std::move(batch.tokens));
  arrays["token_type_ids"] = array_of(std::move(batch.segments));
  arrays["position_ids"] = array_of(std::move(batch.positions));
  arrays["sequence_starts"] = array_of(std::move(batch.sequence_starts));
  arrays["labelled_rows"] = array_of(std::move(batch.labelled_rows));
  arrays["row_labels"] = array_of(std::move(batch.row_labels));
  return arrays;
}

// The batches of a run of a recipe, on one of its ranks.
class Batches {
 public:
  Batches(const GivenRecipe& recipe, const std::vector<std::pair<std::string, double>>& stores,
          int rank, int world, int threads) {
    require(world >= 1 && world <= kMostRanks, "world must be between 1 and {}, not {}", kMostRanks,
            world);
    require(rank >= 0 && rank < world, "rank must be between 0 and {}, not {}", world - 1, rank);
    require(threads >= 1 && threads <= commands::kMaxThreads,
            "threads must be between 1 and {}, not {}", commands::kMaxThreads, threads);
    const nb::gil_scoped_release release;
    std::vector<std::pair<Path, double>> folders;
    for (const auto& [folder, weight] : stores) folders.emplace_back(folder, weight);
    stores_ = pretrain::open_stores(folders);
    const auto vocabulary = stores_.front().store->vocabulary();
    pad_id_ = vocabulary->pad_id();
    const pretrain::PretrainingConfig config =
        pretrain::parse_pretraining_recipe(recipe.load(), vocabulary->size());
    steps_ = config.engine.run.steps;
    has_pairs_ = config.data.pairs.next_sentence;
    sizes_ = engine::solve_batch_sizes(config.engine.batch, world, recipe.place());
    stream_ = std::make_unique<batches::BatchStream>(
        stores_, pretrain::stream_options(config, {{.seed = config.engine.run.seed,
                                                    .world_size = world,
                                                    .rank = rank,
                                                    .micro_batch = sizes_.micro,
                                                    .accumulation = sizes_.accumulation,
                                                    .step_samples = sizes_.train},
                                                   threads}));
  }

  int64_t steps() const { return steps_; }
  int64_t accumulation() const { return sizes_.accumulation; }
  int64_t samples_per_step() const { return sizes_.train; }
  int64_t micro_batch() const { return sizes_.micro; }

  // Micro-step `number` of the run, counted over all steps.
  nb::dict build(int64_t number, bool is_padded) {
    require(number >= 0 && number < steps_ * sizes_.accumulation,
            "there is no micro-step {}: the run has {}", number, steps_ * sizes_.accumulation);
    batches::Batch batch;
    {
      const nb::gil_scoped_release release;
      const int64_t first = number / sizes_.accumulation * sizes_.train;
      batch.reserve(stream_->bounds());
      stream_->build(static_cast<uint64_t>(first), number % sizes_.accumulation, batch);
    }
    const auto samples = wide(batch.samples);
    std::vector<int64_t> next_sentence(batch.sequence_labels.begin(), batch.sequence_labels.end());
    std::ranges::replace_if(
        next_sentence, [](int64_t label) { return label < 0; }, kNoLabel);
    nb::dict arrays = is_padded ? padded(batch, pad_id_) : packed(batch);
    if (has_pairs_) arrays["next_sentence_label"] = array_of(std::move(next_sentence));
    arrays["samples"] = samples;
    return arrays;
  }

 private:
  pretrain::Stores stores_;
  engine::BatchSizes sizes_;
  int64_t steps_ = 0;
  int32_t pad_id_ = 0;
  bool has_pairs_ = true;
  std::unique_ptr<batches::BatchStream> stream_;
};

}  // namespace

void bind_data(nb::module_& module) {
  using corpus::TokenStore;
  nb::class_<TokenStore>(module, "TokenStore")
      .def(
          "__init__",
          [](TokenStore* self, const std::string& folder) {
            const nb::gil_scoped_release release;
            new (self) TokenStore(folder);
          },
          "folder"_a)
      .def_prop_ro("documents", &TokenStore::documents)
      .def_prop_ro("sentences", &TokenStore::sentences)
      .def_prop_ro("tokens", [](const TokenStore& store) { return store.tokens(); })
      .def_prop_ro("manifest",
                   [](const TokenStore& store) {
                     return json_text(corpus::manifest_to_json(store.manifest()));
                   })
      .def_prop_ro("vocabulary",
                   [](const TokenStore& store) { return tokens_of(*store.vocabulary()); })
      .def("document", &document_of, "document"_a)
      .def(
          "verify", [](const TokenStore& store) { store.verify(); },
          nb::call_guard<nb::gil_scoped_release>());
  nb::class_<Batches>(module, "Batches")
      .def(nb::init<const GivenRecipe&, const std::vector<std::pair<std::string, double>>&, int,
                    int, int>(),
           "recipe"_a, "stores"_a, "rank"_a, "world"_a, "threads"_a)
      .def_prop_ro("steps", &Batches::steps)
      .def_prop_ro("accumulation", &Batches::accumulation)
      .def_prop_ro("samples_per_step", &Batches::samples_per_step)
      .def_prop_ro("micro_batch", &Batches::micro_batch)
      .def("build", &Batches::build, "number"_a, "padded"_a);
}

}  // namespace onebit::python
