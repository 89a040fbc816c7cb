#include "onebit/training/training/run_folder.h"

#include "onebit/data/formats/hugging_face_folder.h"
#include "onebit/exchange/checkpoint/checkpoint_state.h"
#include "onebit/ground/base/folder.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/run_files.h"
#include "onebit/ground/base/wording.h"
#include "onebit/ground/recipe/recipe_differences.h"

namespace onebit::training {

namespace {

// Refuses all files except those that a run which ended before its first step may have left.
void refuse_other_files(const Path& output) {
  if (!std::filesystem::exists(output)) return;
  for (const auto& file : std::filesystem::directory_iterator(output)) {
    const std::string name = file.path().filename().string();
    require(run_files::is_of_start(name) || name == "lost+found",
            "{}: contains other files ({}): choose a new or empty folder as --output",
            output.string(), name);
  }
}

}  // namespace

void check_run_folder(const Path& output, bool resume) {
  require(!output.empty(), "--output is empty: give the folder of the run");
  std::error_code error;
  const auto type = std::filesystem::status(output, error).type();
  require(type != std::filesystem::file_type::none, "{}: cannot be inspected: {}", output.string(),
          error.message());
  require(!std::filesystem::exists(output) || std::filesystem::is_directory(output),
          "{}: --output must be a folder, a file of this name exists", output.string());
  const checkpoint::CheckpointFolder checkpoints(output);
  const bool holds_run = std::filesystem::exists(output / run_files::kMetrics) ||
                         checkpoints.tag_in_latest() || !checkpoints.tags().empty();
  require(resume || !holds_run,
          "{}: contains a run already; add --resume to continue it, or choose another --output",
          output.string());
  if (!holds_run) refuse_other_files(output);
}

void write_run_recipes(const Path& output, const Json& recipe, const Json& resolved) {
  make_folder(output);
  write_file_atomically(output / run_files::kRecipe, json_text(recipe, 2) + "\n");
  write_file_atomically(output / run_files::kResolvedRecipe, json_text(resolved, 2) + "\n");
}

void save_run(checkpoint::Checkpoints& checkpoints, const engine::Engine& engine,
              const ParameterTable& table, const ModelDescription& description,
              const ModelCard& card, Json client_state) {
  checkpoints.wait_for_previous();  // before anything is copied for the new one
  client_state["recipe"] = card.recipe;
  client_state["vocabulary_checksum"] = description.vocabulary->checksum();
  std::function<void(const Path&)> write_model;
  if (checkpoints.writes_model()) {
    write_model = [snapshot = std::make_shared<ValueSnapshot>(table), description,
                   card](const Path& folder) {
      snapshot->write(folder, description);
      write_model_card(folder, card, description);
    };
  }
  checkpoints.save(engine, client_state, std::move(write_model));
}

std::vector<std::string> restore_run(const checkpoint::SavedCheckpoint& saved,
                                     const ModelDescription& description, const Json& recipe,
                                     ParameterTable& table, engine::Engine& engine,
                                     int world_size) {
  const std::string place = saved.model_folder.string();
  checkpoint::suggest_other_checkpoints(saved.other_tags, [&] {
    // The shape of a model and its tensors do not determine its activation or its epsilon.
    formats::require_unchanged(saved.model_folder);
    const ModelDescription written = read_model_description(saved.model_folder);
    require_same_shape(description.config, written.config, place);
  });
  const auto checksum = saved.client_state.value("vocabulary_checksum", int64_t{-1});
  require(checksum == description.vocabulary->checksum(),
          "{}: the run was started with another vocabulary; give the data or the model that it was "
          "started with",
          place);
  checkpoint::suggest_other_checkpoints(saved.other_tags,
                                        [&] { load_values(table, saved.model_folder, {}); });
  // Done before the optimizer is loaded, which may put this rank's own values into the table.
  engine.broadcast_values();
  saved.shards.serve_while([&] { engine.load(saved.shards); });
  std::vector<std::string> report = {
      fmt::format("resumed from {} at step {}", saved.tag, saved.step)};
  for (auto& line : recipe_differences(saved.client_state.value("recipe", Json::object()), recipe,
                                       engine.config().recipe.rows())) {
    report.push_back(std::move(line));
  }
  if (saved.world_size != world_size) {
    report.push_back(
        fmt::format("written on {}, resumed on {}: losses continue, but not bit for bit",
                    counted(saved.world_size, "rank"), world_size));
  }
  return report;
}

std::optional<Recipe> stored_recipe(const Path& path) {
  const Path of_run = path / run_files::kRecipe, of_checkpoint = path / run_files::kState;
  if (std::filesystem::exists(of_run))
    return Recipe{.values = read_json(of_run), .place = of_run.string()};
  if (!std::filesystem::exists(of_checkpoint)) return std::nullopt;
  const Json state = checkpoint::read_checkpoint_state(path);
  return Recipe{.values = state.value("/client_state/recipe"_json_pointer, Json()),
                .place = of_checkpoint.string()};
}

void read_client_state(const checkpoint::SavedCheckpoint& saved,
                       const std::function<void()>& read) {
  try {
    read();
  } catch (const Json::exception& error) {
    const Path folder = saved.model_folder.parent_path();
    fail("{}: damaged ({}); resume from another checkpoint with --resume TAG",
         (folder / run_files::kState).string(), error.what());
  }
}

void require_same_shape(const model::BertConfig& wanted, const model::BertConfig& found,
                        const std::string& place) {
  const auto same = [&](const char* key, int64_t here, int64_t there) {
    require(
        here == there,
        "{}: the run's model has {} {}, the checkpoint's has {}: use the recipe and model the run "
        "was started with (recipe.json in its folder)",
        place, key, here, there);
  };
  for (const auto& [key, size] : model::kSizeKeys) same(key, wanted.*size, found.*size);
  same(config_keys::kPreLayerNorm, wanted.pre_layer_norm ? 1 : 0, found.pre_layer_norm ? 1 : 0);
}

}  // namespace onebit::training
