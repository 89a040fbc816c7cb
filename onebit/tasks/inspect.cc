#include "onebit/tasks/inspect.h"

#include <algorithm>

#include "onebit/data/token_store.h"
#include "onebit/engine/checkpoint_folder.h"
#include "onebit/engine/recipe.h"
#include "onebit/formats/safetensors.h"
#include "onebit/model/memory_report.h"
#include "onebit/model/pretraining_model.h"
#include "onebit/tasks/pretraining_config.h"
#include "onebit/tasks/squad_config.h"
#include "onebit/training/model_folder.h"

namespace onebit::tasks {
namespace {

Json shape_of(const model::BertConfig& config) {
  params::Table table;
  const model::PreTrainingModel model(config, table);
  return {{"layers", config.layers},
          {"hidden_size", config.hidden_size},
          {"heads", config.heads},
          {"intermediate_size", config.intermediate_size},
          {"max_positions", config.max_positions},
          {"vocab_size", config.vocab_size},
          {"pre_layer_norm", config.pre_layer_norm},
          {"parameters", table.parameter_count()}};
}

const char* name_of(text::Casing casing) {
  return casing == text::Casing::kUncased ? "uncased" : "cased";
}

Json inspect_store(const Path& path, bool verify) {
  const data::TokenStore store(path);
  const data::StoreManifest& manifest = store.manifest();
  Json json = {{"kind", "token_store"},
               {"path", path.string()},
               {"version", data::kStoreVersion},
               {"documents", manifest.documents},
               {"sentences", manifest.sentences},
               {"tokens", manifest.tokens},
               {"vocabulary",
                {{"size", manifest.vocabulary_size},
                 {"casing", name_of(manifest.casing)},
                 {"checksum", fmt::format("{:08x}", manifest.vocabulary_checksum)}}},
               {"token_size_bytes", manifest.token_size_bytes},
               {"text_bytes", manifest.text_bytes},
               {"format", manifest.format},
               {"source_count", manifest.source_count},
               {"sources", manifest.sources}};
  json["files"] = Json::array();
  for (const data::StoreFile& file : manifest.files) {
    json["files"].push_back({{"name", file.name},
                             {"size_bytes", file.size_bytes},
                             {"crc32", fmt::format("{:08x}", file.crc32)}});
  }
  if (verify) store.verify();
  json["verified"] = verify;
  return json;
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
  const training::ModelDescription description = training::read_model_description(folder);
  Json json = {{"kind", "model"},
               {"path", folder.string()},
               {"architecture", description.architecture},
               {"casing", name_of(description.casing)}};
  json.update(shape_of(description.config));
  const auto source = formats::open_hugging_face_tensors(folder);
  if (verify) source->verify_checksum();
  json["verified"] = verify;
  int64_t bytes = 0;
  for (const auto& entry : source->entries()) bytes += entry.size_bytes();
  json["tensors"] = {{"count", source->entries().size()}, {"size_bytes", bytes}};
  return json;
}

Json inspect_checkpoint(const Path& folder, bool verify) {
  const Json state = read_json(folder / "state.json");
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
    if (verify) file.verify_checksum();
    for (Json& tensor : tensors_of(file)) {
      tensor["file"] = shard.filename().string();
      json["state"].push_back(std::move(tensor));
    }
  }
  json["model"] = inspect_model(folder / "model", verify);
  return json;
}

Json inspect_run(const Path& path, bool verify) {
  const engine::CheckpointFolder folder(path);
  if (verify) {
    for (const std::string& tag : folder.tags()) inspect_checkpoint(folder.folder(tag), true);
  }
  const auto latest = folder.latest();
  return {{"kind", "run"},
          {"path", path.string()},
          {"checkpoints", folder.tags()},
          {"latest", latest ? Json(*latest) : Json()},
          {"model", inspect_model(training::find_model_folder(path), verify)}};
}

// What the memory options would save, at the recipe's micro-batch, without the optimizer.
Json inspect_memory(const PretrainingConfig& config, int64_t micro_batch) {
  const model::BatchLimits limits = {.rows = micro_batch * config.data.pairs.sequence_length,
                                     .sequences = micro_batch,
                                     .masked = micro_batch * config.data.masks.max_predictions};
  const std::pair<const char*, model::MemoryOptions> choices[] = {
      {"no option", {}},
      {"gelu_checkpoint", {.gelu_checkpoint = true}},
      {"normalize_invertible", {.normalize_invertible = true}},
      {"both", {.gelu_checkpoint = true, .normalize_invertible = true}},
      {"full_recomputation", {.full_recomputation = true}},
  };
  Json list = Json::array();
  for (const auto& [name, options] : choices) {
    const auto rows = model::memory_report(config.model, limits, options, config.engine.compute);
    Json one = {{"name", name}, {"total_bytes", model::total_bytes(rows)}};
    for (const auto& row : rows) {
      std::string key = row.name + "_bytes";
      std::replace(key.begin(), key.end(), ' ', '_');
      one[key] = row.bytes;
    }
    list.push_back(std::move(one));
  }
  return list;
}

// What recipes of all tasks share.
Json engine_part(const engine::EngineConfig& config, const Path& path, const char* task) {
  // A recipe whose three sizes belong to more ranks (a run's resolved one) is shown for these.
  const engine::BatchSizes& given = config.batch;
  const int64_t of_one_rank = given.micro * given.accumulation;
  const bool is_whole = given.train > 0 && of_one_rank > 0 && given.train % of_one_rank == 0;
  const int64_t ranks = is_whole ? given.train / of_one_rank : 1;
  const engine::BatchSizes batch =
      engine::solve_batch_sizes(given, static_cast<int>(ranks), path.string());
  return {{"kind", "recipe"},
          {"path", path.string()},
          {"task", task},
          {"ranks", ranks},
          {"batch",
           {{"train", batch.train}, {"micro", batch.micro}, {"accumulation", batch.accumulation}}},
          {"steps", config.run.steps > 0 ? Json(config.run.steps) : Json()},
          {"compute", std::string(onebit::name_of(config.compute))},
          {"optimizer", config.recipe.given().at("optimizer")},
          {"scheduler", config.scheduler},
          {"notices", config.notices}};
}

Json inspect_squad_recipe(const Json& recipe, const Path& path) {
  const SquadConfig config = parse_squad_recipe(recipe, path.string());
  Json json = engine_part(config.engine, path, "squad");
  json["epochs"] = config.engine.run.steps > 0 ? Json() : Json(config.epochs);
  json["max_sequence_length"] = config.features.max_sequence_length;
  json["doc_stride"] = config.features.doc_stride;
  return json;
}

Json inspect_recipe(const Path& path) {
  const Json recipe = engine::load_recipe(path, {});
  if (is_squad_recipe(recipe)) return inspect_squad_recipe(recipe, path);
  const int64_t vocabulary =
      recipe.value("model", Json::object()).value("vocab_size", int64_t{30522});
  const PretrainingConfig config = parse_pretraining_recipe(recipe, path.string(), vocabulary);
  Json json = engine_part(config.engine, path, "pretrain");
  json["sequence_length"] = config.data.pairs.sequence_length;
  json["gigaflop_a_full_sequence"] =
      1e-9 * model::training_flops(config.model, config.data.pairs.sequence_length,
                                   config.data.masks.max_predictions);
  json["model"] = shape_of(config.model);
  const int64_t micro = json["batch"]["micro"].get<int64_t>();
  json["memory_without_optimizer"] = inspect_memory(config, micro);
  return json;
}

}  // namespace

Json inspect(const Path& path, bool verify) {
  require(std::filesystem::exists(path), "{}: nothing is there", path.string());
  const bool looks_like_store = data::is_token_store(path) ||
                                std::filesystem::exists(path / data::kTokensName) ||
                                std::filesystem::exists(path / data::kManifestName);
  if (looks_like_store) return inspect_store(path, verify);
  if (std::filesystem::is_regular_file(path)) {
    require(!verify, "{}: a recipe has no checksum that could be verified", path.string());
    require(path.extension() == ".json",
            "{}: of files only recipes (.json) are told about; give the folder it lies in",
            path.string());
    return inspect_recipe(path);
  }
  if (std::filesystem::exists(path / "state.json")) return inspect_checkpoint(path, verify);
  if (engine::CheckpointFolder(path).latest()) return inspect_run(path, verify);
  return inspect_model(training::find_model_folder(path), verify);
}

}  // namespace onebit::tasks
