#include "onebit/tasks/pretraining_data.h"

namespace onebit::tasks {
namespace {

// Everything that determines the examples of an epoch.
Json cut_of(const data::BatchStreamOptions& options, const Stores& stores) {
  Json checksums = Json::array();
  for (const data::WeightedStore& entry : stores) {
    const corpus::StoreManifest& manifest = entry.store->manifest();
    for (const char* name : {corpus::kTokensName, corpus::kSentencesName, corpus::kDocumentsName}) {
      checksums.push_back(manifest.file(name).crc32);
    }
  }
  return {{"seed", options.seed},
          {"sequence_length", options.pairs.sequence_length},
          {"short_sequence_probability", options.pairs.short_sequence_probability},
          {"next_sentence", options.pairs.next_sentence},
          {"checksums", checksums}};
}

}  // namespace

Stores open_stores(const std::vector<std::pair<Path, double>>& folders) {
  require(!folders.empty(),
          "no token store given: make one with `onebit prepare` and name it with "
          "--data");
  Stores stores;
  for (const auto& [folder, weight] : folders) {
    stores.push_back({.store = std::make_shared<corpus::TokenStore>(folder), .weight = weight});
  }
  return stores;
}

std::vector<std::pair<std::string, std::string>> describe_stores(const Stores& stores) {
  double all_weights = 0;
  for (const data::WeightedStore& entry : stores) all_weights += entry.weight;
  std::vector<std::pair<std::string, std::string>> rows;
  for (const data::WeightedStore& entry : stores) {
    const corpus::TokenStore& store = *entry.store;
    std::string text =
        fmt::format("{}: {} tokens, {} sentences, {} documents", store.folder().string(),
                    store.tokens(), store.sentences(), store.documents());
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
  for (const data::WeightedStore& entry : stores) {
    const corpus::StoreManifest& manifest = entry.store->manifest();
    list.push_back({{"tokens", manifest.tokens},
                    {"checksum", manifest.file(corpus::kTokensName).crc32},
                    {"weight", entry.weight}});
  }
  return list;
}

Json marks_to_json(const std::vector<data::EpochMark>& marks, const Stores& stores,
                   const data::BatchStreamOptions& options) {
  Json list = Json::array();
  for (const data::EpochMark& mark : marks) {
    list.push_back({{"first_epoch_examples", mark.first_examples},
                    {"epoch", mark.epoch},
                    {"epoch_begin", mark.begin}});
  }
  return {{"cut", cut_of(options, stores)}, {"stores", list}};
}

std::vector<data::EpochMark> marks_of(const Json& client_state, const Stores& stores,
                                      const data::BatchStreamOptions& options) {
  const Json epochs = client_state.value("epochs", Json::object());
  if (epochs.value("cut", Json()) != cut_of(options, stores)) return {};
  if (client_state.value("stores", Json()) != stores_to_json(stores)) return {};
  std::vector<data::EpochMark> marks;
  for (const Json& mark : epochs.at("stores")) {
    marks.push_back({.first_examples = mark.at("first_epoch_examples"),
                     .epoch = mark.at("epoch"),
                     .begin = mark.at("epoch_begin")});
  }
  require(marks.size() == stores.size(), "{} stores were read, the checkpoint has positions for {}",
          stores.size(), marks.size());
  return marks;
}

data::BatchStreamOptions stream_options(const PretrainingConfig& config,
                                        const training::StreamShare& share) {
  return {.seed = share.seed,
          .world_size = share.world_size,
          .rank = share.rank,
          .micro_batch = share.micro_batch,
          .accumulation = share.accumulation,
          .pairs = config.data.pairs,
          .masks = config.data.masks,
          .threads = share.threads};
}

data::EvaluationOptions held_out_options(const comm::Communicator& communicator, int threads) {
  constexpr uint64_t kHeldOutSeed = 2019;
  data::EvaluationOptions options;
  options.seed = kHeldOutSeed;
  options.world_size = communicator.world_size();
  options.rank = communicator.rank();
  options.threads = threads;
  return options;
}

std::unique_ptr<data::EvaluationStream> open_held_out(const Path& folder,
                                                      const VocabularyOwner& owner,
                                                      const data::EvaluationOptions& options) {
  auto store = std::make_shared<corpus::TokenStore>(folder);
  require_vocabulary_of(owner, *store);
  return std::make_unique<data::EvaluationStream>(std::move(store), options);
}

}  // namespace onebit::tasks
