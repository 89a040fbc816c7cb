#include "onebit/program/inspect/inspect.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "onebit/apps/pretrain/pretraining_config.h"
#include "onebit/apps/pretrain/pretraining_heads.h"
#include "onebit/data/corpus/token_store.h"
#include "onebit/data/formats/hugging_face_folder.h"
#include "onebit/data/formats/safetensors.h"
#include "onebit/data/samples/sample_store.h"
#include "onebit/data/text/casing.h"
#include "onebit/exchange/checkpoint/checkpoint_folder.h"
#include "onebit/exchange/checkpoint/state_shard.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/run_files.h"
#include "onebit/ground/metrics/human.h"
#include "onebit/ground/metrics/text_table.h"
#include "onebit/ground/recipe/recipe.h"
#include "onebit/program/inspect/task_list.h"
#include "onebit/training/training/model_folder.h"

namespace onebit::inspect {
namespace {

constexpr size_t kMaxInRow = 8;  // of a list

std::string words_of(std::string key) {
  if (key.ends_with("_bytes")) key.resize(key.size() - std::string("_bytes").size());
  std::replace(key.begin(), key.end(), '_', ' ');
  return key;
}

std::string number_text(const std::string& key, const Json& value) {
  if (key.ends_with("_bytes")) return metrics::human_bytes(value.get<double>());
  if (key == "parameters") return metrics::human_count(value.get<double>());
  return value.is_number_float() ? fmt::format("{:g}", value.get<double>()) : json_text(value);
}

std::string inline_text(const std::string& key, const Json& value) {
  if (value.is_null()) return "none";
  if (value.is_number()) return number_text(key, value);
  if (value.is_string()) return value.get<std::string>();
  std::string text;
  size_t shown = 0;
  if (value.is_array()) {
    for (const Json& one : value) {
      if (shown++ == kMaxInRow) return text + fmt::format(", ... ({} listed)", value.size());
      text += (text.empty() ? "" : ", ") + inline_text(key, one);
    }
    return text.empty() ? "none" : text;
  }
  if (!value.is_object()) return json_text(value);
  for (const auto& [name, one] : value.items()) {
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : ", ", words_of(name), inline_text(name, one));
  }
  return text;
}

// Adds one row per member. An object or a list of named things gets a row for each of its members.
void add_rows(metrics::TextTable& table, const Json& object) {
  for (const auto& [key, value] : object.items()) {
    if (key == "kind" || key == "path" || (value.is_object() && value.contains("kind"))) continue;
    if (value.is_null()) continue;  // not looked for, or not known
    const bool named = value.is_array() && !value.empty() && value[0].is_object();
    if (!named) {
      table.add_row({words_of(key), inline_text(key, value)});
      continue;
    }
    for (const Json& one : value) {
      Json rest = one;
      rest.erase("name");
      table.add_row(
          {fmt::format("{} {}", words_of(key), one.value("name", "")), inline_text(key, rest)});
    }
  }
}

void add_part(std::string& text, const Json& part) {
  metrics::TextTable table;
  std::string kind = part.at("kind").get<std::string>();
  std::replace(kind.begin(), kind.end(), '_', ' ');
  table.add_title(fmt::format("{}: {}", part.at("path").get<std::string>(), kind));
  add_rows(table, part);
  text += table.text() + "\n";
  for (const auto& [key, value] : part.items()) {
    if (value.is_object() && value.contains("kind")) add_part(text, value);
  }
}

}  // namespace

std::string inspection_text(const Json& inspected) {
  std::string text;
  add_part(text, inspected);
  return text;
}

namespace {

// The part of `onebit inspect` about token stores and sample stores.
Json lengths_to_json(const corpus::LengthStatistics& lengths) {
  return {{"mean", lengths.mean}, {"median", lengths.median}, {"longest", lengths.longest}};
}

// [{"name": "4 to 7", "count": 12}, ...], without the empty ends.
Json histogram_to_json(const corpus::LengthStatistics& lengths) {
  Json bins = Json::array();
  for (size_t bin = 0; bin < lengths.histogram.size(); ++bin) {
    const uint64_t count = lengths.histogram[bin], from = uint64_t{1} << bin;
    if (count == 0 && bins.empty()) continue;
    bins.push_back({{"name", bin == 0 ? "1" : fmt::format("{} to {}", from, 2 * from - 1)},
                    {"count", count},
                    {"from", from}});
  }
  return bins;
}

Json token_statistics(const corpus::TokenStore& store) {
  const corpus::StoreStatistics found = corpus::statistics_of(store);
  return {{"kind", "statistics"},
          {"path", store.folder().string()},
          {"unknown_tokens", found.unknown_tokens},
          {"unknown_share",
           static_cast<double>(found.unknown_tokens) / static_cast<double>(store.tokens())},
          {"tokens_in_sentences_over_512", found.long_sentence_tokens},
          {"share_in_sentences_over_512",
           static_cast<double>(found.long_sentence_tokens) / static_cast<double>(store.tokens())},
          {"sentence_tokens", lengths_to_json(found.sentence_tokens)},
          {"document_tokens", lengths_to_json(found.document_tokens)},
          {"document_sentences", lengths_to_json(found.document_sentences)},
          {"sentences_of_tokens", histogram_to_json(found.sentence_tokens)},
          {"documents_of_tokens", histogram_to_json(found.document_tokens)}};
}

Json list_of_files(const std::vector<corpus::StoreFile>& files) {
  Json list = Json::array();
  for (const corpus::StoreFile& file : files) {
    list.push_back({{"name", file.name},
                    {"size_bytes", file.size_bytes},
                    {"crc32", fmt::format("{:08x}", file.crc32)}});
  }
  return list;
}

Json vocabulary_to_json(const corpus::Store& store) {
  return {{"size", store.vocabulary()->size()},
          {"casing", name_of(store.casing())},
          {"checksum", fmt::format("{:08x}", store.vocabulary()->checksum())}};
}

Json inspect_token_store(const Path& path, const InspectOptions& options) {
  const corpus::TokenStore store(path);
  const corpus::StoreManifest& manifest = store.manifest();
  Json json = {{"kind", "token_store"},
               {"path", path.string()},
               {"version", corpus::kStoreVersion},
               {"documents", manifest.documents},
               {"sentences", manifest.sentences},
               {"tokens", manifest.tokens},
               {"vocabulary", vocabulary_to_json(store)},
               {"token_size_bytes", manifest.token_size_bytes},
               {"text_bytes", manifest.text_bytes},
               {"format", manifest.format},
               {"source_count", manifest.source_count},
               {"sources", manifest.sources}};
  json["files"] = list_of_files(manifest.files);
  json["duplicate_documents"] =
      manifest.duplicate_documents ? Json(*manifest.duplicate_documents) : Json();
  if (options.verify) store.verify();
  json["verified"] = options.verify;
  json["statistics"] = options.statistics ? token_statistics(store) : Json();
  return json;
}

Json sample_statistics(const samples::SampleStore& store) {
  const samples::SampleStatistics found = samples::statistics_of(store);
  const auto share = [](uint64_t part, uint64_t all) {
    return static_cast<double>(part) / static_cast<double>(all);
  };
  return {{"kind", "sample_statistics"},
          {"path", store.folder().string()},
          {"unknown_tokens", found.unknown_tokens},
          {"unknown_share", share(found.unknown_tokens, store.tokens())},
          {"masked_share", share(store.manifest().masked, store.tokens())},
          {"masked_kept_share", share(found.kept, store.manifest().masked)},
          {"masked_replaced_share", share(found.replaced, store.manifest().masked)},
          {"sample_tokens", lengths_to_json(found.sample_tokens)},
          {"sample_masked", lengths_to_json(found.sample_masked)},
          {"samples_of_tokens", histogram_to_json(found.sample_tokens)}};
}

Json inspect_sample_store(const Path& path, const InspectOptions& options) {
  const samples::SampleStore store(path);
  const samples::SampleManifest& manifest = store.manifest();
  Json json = {{"kind", "sample_store"},
               {"path", path.string()},
               {"version", samples::kSampleStoreVersion},
               {"samples", manifest.samples},
               {"tokens", manifest.tokens},
               {"masked", manifest.masked},
               {"replaced_by_mask", manifest.replaced_by_mask},
               {"pairs", manifest.pairs},
               {"next_sentence_labels", manifest.labels},
               {"random_next", manifest.random_next},
               {"longest_tokens", manifest.longest_tokens},
               {"most_masked", manifest.most_masked},
               {"vocabulary", vocabulary_to_json(store)},
               {"token_size_bytes", manifest.token_size_bytes},
               {"format", manifest.format},
               {"source_count", manifest.source_count},
               {"sources", manifest.sources},
               {"files", list_of_files(manifest.files)}};
  if (options.verify) store.verify();
  json["verified"] = options.verify;
  json["statistics"] = options.statistics ? sample_statistics(store) : Json();
  return json;
}

// Whether `path` contains a store, intact or damaged.
bool looks_like_store(const Path& path) {
  return !corpus::store_format(path).empty() ||
         std::filesystem::exists(path / corpus::kTokensName) ||
         std::filesystem::exists(path / corpus::kManifestName);
}

// Inspects a store of either kind. Error: it is damaged or, with `verify`, not as its checksums.
Json inspect_store(const Path& path, const InspectOptions& options) {
  return samples::is_sample_store(path) ? inspect_sample_store(path, options)
                                        : inspect_token_store(path, options);
}

Json tensors_of(const formats::TensorSource& source) {
  Json tensors = Json::array();
  for (const auto& entry : source.entries()) {
    Json shape = Json::array();
    for (int axis = 0; axis < entry.shape.rank(); ++axis) shape.push_back(entry.shape[axis]);
    tensors.push_back({{"name", entry.name},
                       {"type", std::string(onebit::name_of(entry.dtype))},
                       {"shape", std::move(shape)},
                       {"size_bytes", entry.size_bytes()}});
  }
  return tensors;
}

Json inspect_model(const Path& folder, bool verify) {
  if (verify) formats::require_unchanged(folder);
  const training::ModelDescription description = training::read_model_description(folder);
  Json json = {{"kind", "model"},
               {"path", folder.string()},
               {"architecture", description.architecture},
               {"casing", name_of(description.casing)}};
  const bool masked_words_alone =
      description.architecture == pretrain::architecture_of(model::PreTrainingHeads::kMaskedWords);
  json.update(pretrain::model_sizes(description.config, masked_words_alone
                                                            ? model::PreTrainingHeads::kMaskedWords
                                                            : model::PreTrainingHeads::kBoth));
  const auto source = formats::open_hugging_face_tensors(folder);
  if (verify) source->verify_checksum();
  json["verified"] = verify;
  int64_t bytes = 0;
  for (const auto& entry : source->entries()) bytes += entry.size_bytes();
  json["tensors"] = {{"count", source->entries().size()}, {"size_bytes", bytes}};
  return json;
}

// If the hosts of a run have separate disks, each disk stores only some of the shards.
void require_all_shards(const Path& folder, const Json& state) {
  if (state.contains("disks")) return;
  const int ranks = state.value("world_size", 0);
  for (int rank = 0; rank < ranks; ++rank) {
    const Path shard = folder / checkpoint::shard_name(rank, ranks);
    require(std::filesystem::exists(shard),
            "{}: does not exist, and the run had {} ranks; restore it from a copy, or resume from "
            "another checkpoint",
            shard.string(), ranks);
  }
}

Json inspect_checkpoint(const Path& folder, bool verify) {
  const Json state = checkpoint::read_checkpoint_state(folder);
  if (verify) require_all_shards(folder, state);
  const Json client = state.value("client_state", Json::object());
  Json json = {{"kind", "checkpoint"},
               {"path", folder.string()},
               {"step", state.value("step", Json())},
               {"ranks", state.value("world_size", Json())},
               {"samples", client.value("samples", Json())},
               {"state", Json::array()}};
  std::vector<Path> shards;
  for (const auto& item : std::filesystem::directory_iterator(folder)) {
    if (item.path().extension() == ".safetensors") shards.push_back(item.path());
  }
  std::sort(shards.begin(), shards.end());
  for (const Path& shard : shards) {
    const formats::SafetensorsFile file(shard);
    if (verify) {
      file.verify_checksum();
      checkpoint::require_of_checkpoint(state, folder, shard.filename().string());
    }
    for (Json& tensor : tensors_of(file)) {
      tensor["file"] = shard.filename().string();
      json["state"].push_back(std::move(tensor));
    }
  }
  json["model"] = inspect_model(folder / run_files::kModel, verify);
  if (verify) checkpoint::require_of_checkpoint(state, folder, checkpoint::model_file_name());
  json["verified"] = verify;
  return json;
}

// Error: lists all damaged checkpoints, and the intact ones.
void verify_all(const checkpoint::CheckpointFolder& folder) {
  std::vector<std::string> whole, flaws;
  for (const std::string& tag : folder.tags()) {
    try {
      inspect_checkpoint(folder.folder(tag), true);
      whole.push_back(tag);
    } catch (const Error& error) {
      flaws.emplace_back(error.what());
    }
  }
  require(flaws.empty(), "{}\n{} of {} checkpoints are intact{}{}", fmt::join(flaws, "\n"),
          whole.size(), whole.size() + flaws.size(), whole.empty() ? "" : ": ",
          fmt::join(whole, ", "));
}

Json inspect_run(const Path& path, bool verify) {
  const checkpoint::CheckpointFolder folder(path);
  if (verify) verify_all(folder);
  const auto latest = folder.latest();
  return {{"kind", "run"},
          {"path", path.string()},
          {"checkpoints", folder.tags()},
          {"latest", latest ? Json(*latest) : Json()},
          {"verified", verify},
          {"model", inspect_model(training::find_model_folder(path), verify)}};
}

// The part that recipes of all tasks share.
Json engine_part(const engine::EngineConfig& config, const Path& path, const char* task) {
  // A recipe whose three batch sizes imply several ranks (a run's resolved one) is shown for these.
  const int ranks = engine::ranks_of(config.batch);
  const engine::BatchSizes batch = engine::solve_batch_sizes(config.batch, ranks, path.string());
  return {{"kind", "recipe"},
          {"path", path.string()},
          {"task", task},
          {"ranks", ranks},
          {"batch",
           {{"train", batch.train}, {"micro", batch.micro}, {"accumulation", batch.accumulation}}},
          {"steps", config.run.steps > 0 ? Json(config.run.steps) : Json()},
          {"compute", std::string(onebit::name_of(config.compute))},
          {"optimizer", config.recipe.given().at("optimizer")},
          {"scheduler", config.recipe.given().value("scheduler", Json())},
          {"notices", config.recipe.notices()}};
}

Json inspect_recipe(const Path& path) {
  const Recipe recipe = load_recipe(path, {});
  const TaskKind& task = task_of(recipe);
  const training::RecipeFacts facts = task.inspect(recipe);
  Json json = engine_part(facts.engine, path, task.name);
  const Json& sizes = json.at("batch");
  json.update(facts.of_task({.train = sizes.at("train").get<int64_t>(),
                             .micro = sizes.at("micro").get<int64_t>(),
                             .accumulation = sizes.at("accumulation").get<int64_t>()}));
  return json;
}

}  // namespace

Json inspect(const Path& path, const InspectOptions& options) {
  const bool verify = options.verify;
  require(std::filesystem::exists(path), "{}: no such file or folder", path.string());
  if (looks_like_store(path)) return inspect_store(path, options);
  require(!options.statistics, "{}: is not a store; statistics exist only for stores",
          path.string());
  if (std::filesystem::is_regular_file(path)) {
    require(!verify, "{}: a recipe has no checksum to verify", path.string());
    require(path.extension() == ".json",
            "{}: the only single files that can be inspected are recipes (.json); give the folder "
            "that contains it",
            path.string());
    return inspect_recipe(path);
  }
  if (std::filesystem::exists(path / run_files::kState)) return inspect_checkpoint(path, verify);
  if (checkpoint::CheckpointFolder(path).latest()) return inspect_run(path, verify);
  return inspect_model(training::find_model_folder(path), verify);
}

}  // namespace onebit::inspect
