#include "onebit/tasks/inspect.h"

#include "onebit/data/token_store.h"
#include "onebit/engine/checkpoint_folder.h"
#include "onebit/formats/safetensors.h"
#include "onebit/metrics/human.h"
#include "onebit/model/memory_report.h"
#include "onebit/model/pretraining_model.h"
#include "onebit/tasks/model_folder.h"
#include "onebit/tasks/pretraining_config.h"

namespace onebit::tasks {
namespace {

using metrics::human_bytes;
using metrics::human_count;

std::string bytes_text(int64_t bytes) {
  return human_bytes(static_cast<double>(bytes));
}

void add_shape(InspectedPart& part, const model::BertConfig& config) {
  params::Table table;
  const model::PreTrainingModel model(config, table);
  part.rows.push_back({"layers", std::to_string(config.layers)});
  part.rows.push_back({"hidden", std::to_string(config.hidden_size)});
  part.rows.push_back({"heads", std::to_string(config.heads)});
  part.rows.push_back({"feed-forward", std::to_string(config.intermediate_size)});
  part.rows.push_back({"positions", std::to_string(config.max_positions)});
  part.rows.push_back({"vocabulary", std::to_string(config.vocab_size)});
  part.rows.push_back({"layer norm", config.pre_layer_norm ? "before each sublayer" : "after"});
  part.rows.push_back({"parameters with pre-training heads",
                       human_count(static_cast<double>(table.parameter_count()))});
}

InspectedPart inspect_store(const Path& path, bool verify) {
  const data::TokenStore store(path);
  InspectedPart part{.title = path.string() + ": token store", .rows = store.describe()};
  if (verify) {
    store.verify();
    part.rows.push_back({"checksums", "all equal"});
  }
  return part;
}

InspectedPart inspect_model(const Path& folder) {
  const ModelDescription description = read_model_description(folder);
  InspectedPart part{.title = folder.string() + ": model", .rows = {}};
  part.rows.push_back({"architecture", description.architecture});
  add_shape(part, description.config);
  part.rows.push_back(
      {"casing", description.casing == text::Casing::kUncased ? "uncased" : "cased"});
  const auto source = formats::open_hugging_face_tensors(folder);
  int64_t bytes = 0;
  for (const auto& entry : source->entries()) bytes += entry.size_bytes();
  part.rows.push_back(
      {"tensors", fmt::format("{}, {}", source->entries().size(), bytes_text(bytes))});
  return part;
}

InspectedPart inspect_checkpoint(const Path& folder) {
  const Json state = read_json(folder / "state.json");
  InspectedPart part{.title = folder.string() + ": checkpoint", .rows = {}};
  part.rows.push_back({"step", state.value("step", Json()).dump()});
  part.rows.push_back({"ranks", state.value("world_size", Json()).dump()});
  const Json client = state.value("client_state", Json::object());
  part.rows.push_back({"samples", client.value("samples", Json()).dump()});
  for (const auto& item : std::filesystem::directory_iterator(folder)) {
    if (item.path().extension() != ".safetensors") continue;
    const formats::SafetensorsFile file(item.path());
    for (const auto& entry : file.entries()) {
      part.rows.push_back(
          {fmt::format("{} {}", item.path().filename().string(), entry.name),
           fmt::format("{} {}", to_string(entry.shape), bytes_text(entry.size_bytes()))});
    }
  }
  return part;
}

InspectedPart inspect_run(const Path& path) {
  const engine::CheckpointFolder folder(path);
  InspectedPart part{.title = path.string() + ": run", .rows = {}};
  part.rows.push_back({"checkpoints", fmt::format("{}", fmt::join(folder.tags(), ", "))});
  part.rows.push_back({"latest", folder.latest().value_or("none")});
  return part;
}

// What the memory options would save, at the recipe's micro-batch.
InspectedPart inspect_memory(const PretrainingConfig& config, int64_t micro_batch) {
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
  InspectedPart part{.title = fmt::format("memory of a rank at micro-batch {}, without the "
                                          "optimizer",
                                          micro_batch),
                     .rows = {}};
  for (const auto& [name, options] : choices) {
    const auto rows = model::memory_report(config.model, limits, options, config.engine.compute);
    std::string text = bytes_text(model::total_bytes(rows)) + ":";
    for (const auto& row : rows) text += fmt::format(" {} {},", row.name, bytes_text(row.bytes));
    text.pop_back();
    part.rows.push_back({name, text});
  }
  return part;
}

std::vector<InspectedPart> inspect_recipe(const Path& path) {
  const Json recipe = read_json(path);
  const int64_t vocabulary =
      recipe.value("model", Json::object()).value("vocab_size", int64_t{30522});
  const PretrainingConfig config = parse_pretraining_recipe(recipe, path.string(), vocabulary);
  InspectedPart part{.title = path.string() + ": recipe", .rows = {}};
  add_shape(part, config.model);
  const engine::BatchSizes batch = engine::solve_batch_sizes(config.engine.batch, 1, path.string());
  part.rows.push_back({"batch", fmt::format("{} = {} x {} micro-steps on one rank", batch.train,
                                            batch.micro, batch.accumulation)});
  part.rows.push_back({"steps", std::to_string(config.engine.run.steps)});
  part.rows.push_back({"sequence length", std::to_string(config.data.pairs.sequence_length)});
  part.rows.push_back({"compute", std::string(name_of(config.engine.compute))});
  part.rows.push_back({"optimizer", config.engine.optimizer.dump()});
  part.rows.push_back({"scheduler", config.engine.scheduler.dump()});
  const double flops = model::training_flops(config.model, config.data.pairs.sequence_length,
                                             config.data.masks.max_predictions);
  part.rows.push_back({"work", fmt::format("{:.3g} GFLOP a full sequence", flops * 1e-9)});
  for (const auto& notice : config.engine.notices) part.rows.push_back({"notice", notice});
  return {part, inspect_memory(config, batch.micro)};
}

}  // namespace

std::vector<InspectedPart> inspect(const Path& path, bool verify) {
  require(std::filesystem::exists(path), "{}: nothing is there", path.string());
  if (std::filesystem::is_regular_file(path)) return inspect_recipe(path);
  if (data::is_token_store(path)) return {inspect_store(path, verify)};
  if (std::filesystem::exists(path / "state.json")) {
    return {inspect_checkpoint(path), inspect_model(path / "model")};
  }
  if (std::filesystem::exists(path / "latest")) {
    return {inspect_run(path), inspect_model(find_model_folder(path))};
  }
  return {inspect_model(find_model_folder(path))};
}

}  // namespace onebit::tasks
