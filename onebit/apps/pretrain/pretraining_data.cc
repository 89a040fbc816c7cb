#include "onebit/apps/pretrain/pretraining_data.h"

#include "onebit/data/samples/sample_store.h"
#include "onebit/ground/base/checksum.h"
#include "onebit/ground/base/json.h"

namespace onebit::pretrain {
namespace {

Json checksums_of_files(const Stores& stores) {
  Json checksums = Json::array();
  for (const batches::WeightedStore& entry : stores) {
    for (const corpus::StoreFile& file : entry.store->content_files()) {
      checksums.push_back(file.crc32);
    }
  }
  return checksums;
}

// Everything that determines the examples of an epoch.
Json cut_of(const batches::BatchStreamOptions& options, const Stores& stores) {
  Json cut = {{"seed", options.seed},
              {"sequence_length", options.pairs.sequence_length},
              {"short_sequence_probability", options.pairs.short_sequence_probability},
              {"next_sentence", options.pairs.next_sentence},
              {"long_sentences", "pieces"},
              {"checksums", checksums_of_files(stores)}};
  if (options.pairs.packing) cut["packing"] = true;
  return cut;
}

}  // namespace

uint32_t checksum_of(const corpus::Store& store) {
  if (dynamic_cast<const samples::SampleStore*>(&store) == nullptr) {
    return store.content_files().front().crc32;
  }
  uint32_t joined = 0;
  for (const corpus::StoreFile& file : store.content_files()) {
    joined = crc32_joined(joined, file.crc32, file.size_bytes);
  }
  return joined;
}

Stores open_stores(const std::vector<std::pair<Path, double>>& folders) {
  require(!folders.empty(),
          "no store given: make one with `onebit prepare` and pass it with "
          "--data");
  Stores stores;
  for (const auto& [folder, weight] : folders) {
    stores.push_back({.store = batches::open_store(folder), .weight = weight});
  }
  return stores;
}

void require_segments(const corpus::Store& store, int64_t segments) {
  const auto* samples = dynamic_cast<const samples::SampleStore*>(&store);
  require(
      samples == nullptr || samples->manifest().pairs == 0 || segments >= 2,
      "{}: {} of its {} samples are pairs, and the model has {} token type where a pair needs 2 "
      "(model.type_vocab_size)",
      store.folder().string(), samples == nullptr ? 0 : samples->manifest().pairs,
      samples == nullptr ? 0 : samples->samples(), segments);
}

std::vector<std::pair<std::string, std::string>> describe_stores(const Stores& stores) {
  double all_weights = 0;
  for (const batches::WeightedStore& entry : stores) all_weights += entry.weight;
  std::vector<std::pair<std::string, std::string>> rows;
  for (const batches::WeightedStore& entry : stores) {
    std::string text = fmt::format("{}: {}", entry.store->folder().string(), entry.store->counts());
    if (all_weights > 0) {
      text += fmt::format("; weight {:g}, {:.1f} % of the samples", entry.weight,
                          100 * entry.weight / all_weights);
    } else if (stores.size() > 1) {
      text += "; weighted by its number of examples";
    }
    rows.emplace_back("training data", std::move(text));
  }
  return rows;
}

Json stores_to_json(const Stores& stores) {
  Json list = Json::array();
  for (const batches::WeightedStore& entry : stores) {
    list.push_back({{"tokens", entry.store->tokens()},
                    {"checksum", checksum_of(*entry.store)},
                    {"weight", entry.weight}});
  }
  return list;
}

bool are_those_of(const Json& client_state, const Stores& stores) {
  if (client_state.value("stores", Json()) != stores_to_json(stores)) return false;
  const Json files = checksums_of_files(stores);
  return client_state.value("/epochs/cut/checksums"_json_pointer, files) == files;
}

bool cuts_long_sentences(const Json& client_state) {
  return client_state.contains("/epochs/cut/long_sentences"_json_pointer);
}

Json marks_to_json(const std::vector<batches::EpochMark>& marks, const Stores& stores,
                   const batches::BatchStreamOptions& options) {
  Json list = Json::array();
  for (const batches::EpochMark& mark : marks) {
    list.push_back({{"first_epoch_examples", mark.first_examples},
                    {"epoch", mark.epoch},
                    {"epoch_begin", mark.begin}});
  }
  return {{"cut", cut_of(options, stores)}, {"stores", list}};
}

std::vector<batches::EpochMark> marks_of(const Json& client_state, const Stores& stores,
                                         const batches::BatchStreamOptions& options) {
  const Json epochs = client_state.value("epochs", Json::object());
  if (epochs.value("cut", Json()) != cut_of(options, stores)) return {};
  if (!are_those_of(client_state, stores)) return {};
  std::vector<batches::EpochMark> marks;
  for (const Json& mark : epochs.at("stores")) {
    marks.push_back({.first_examples = mark.at("first_epoch_examples"),
                     .epoch = mark.at("epoch"),
                     .begin = mark.at("epoch_begin")});
  }
  require(marks.size() == stores.size(), "{} stores were read, the checkpoint has positions for {}",
          stores.size(), marks.size());
  return marks;
}

batches::BatchStreamOptions stream_options(const PretrainingConfig& config,
                                           const training::StreamShare& share) {
  return {.seed = share.seed,
          .world_size = share.world_size,
          .rank = share.rank,
          .micro_batch = share.micro_batch,
          .accumulation = share.accumulation,
          .step_samples = share.step_samples,
          .pairs = config.data.pairs,
          .masks = config.data.masks,
          .threads = share.threads};
}

batches::EvaluationOptions held_out_options(const comm::Communicator& communicator, int threads) {
  constexpr uint64_t kHeldOutSeed = 2019;
  batches::EvaluationOptions options;
  options.seed = kHeldOutSeed;
  options.world_size = communicator.world_size();
  options.rank = communicator.rank();
  options.threads = threads;
  return options;
}

std::unique_ptr<batches::EvaluationStream> open_held_out(
    const std::shared_ptr<const corpus::Store>& store, const finetune::VocabularyOwner& owner,
    const batches::EvaluationOptions& options) {
  finetune::require_vocabulary_of(owner, *store);
  return std::make_unique<batches::EvaluationStream>(store, options);
}

}  // namespace onebit::pretrain
