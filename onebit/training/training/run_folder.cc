#include "onebit/training/training/run_folder.h"

#include "onebit/data/formats/hugging_face_folder.h"
#include "onebit/exchange/checkpoint/checkpoint_folder.h"
#include "onebit/ground/base/folder.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/run_files.h"
#include "onebit/ground/base/wording.h"
#include "onebit/ground/metrics/human.h"
#include "onebit/ground/recipe/recipe.h"
#include "onebit/training/training/table_rows.h"

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

std::function<void(const Path&)> model_writer(const ParameterTable& table,
                                              const ModelDescription& description,
                                              const ModelCard& card) {
  return
      [snapshot = std::make_shared<ValueSnapshot>(table), description, card](const Path& folder) {
        snapshot->write(folder, description);
        write_model_card(folder, card, description);
      };
}

void require_same_model(const checkpoint::SavedCheckpoint& saved,
                        const ModelDescription& description) {
  const std::string place = saved.model_folder.string();
  checkpoint::suggest_other_checkpoints(saved.other_tags, [&] {
    // The shape of a model and its tensors do not determine its activation or its epsilon.
    formats::require_unchanged(saved.model_folder);
    const ModelDescription written = read_model_description(saved.model_folder);
    require_same_shape(description.config, written.config, place);
    require(description.casing == written.casing,
            "{}: the run was started with {} text, and the data or the model given is {}; give the "
            "one that it was started with",
            place, text::name_of(written.casing), text::name_of(description.casing));
  });
  const auto checksum = saved.client_state.value(kVocabularyChecksum, int64_t{-1});
  require(checksum == description.vocabulary->checksum(),
          "{}: the run was started with another vocabulary; give the data or the model that it was "
          "started with",
          place);
}

std::vector<std::string> describe_resume(const checkpoint::SavedCheckpoint& saved,
                                         const Json& recipe, const engine::EngineConfig& config,
                                         int world_size) {
  std::vector<std::string> report = {
      fmt::format("resumed from {} at step {}", saved.tag, saved.step)};
  for (auto& line : recipe_differences(saved.client_state.value("recipe", Json::object()), recipe,
                                       config.recipe.rows())) {
    report.push_back(std::move(line));
  }
  if (saved.world_size != world_size) {
    report.push_back(
        fmt::format("written on {}, resumed on {}: losses continue, but not bit for bit",
                    counted(saved.world_size, "rank"), world_size));
  }
  return report;
}

std::string describe_disks(const checkpoint::Disks& disks, int64_t copies) {
  const int count = disks.count();
  if (count == 1) {
    return copies == 1 ? ""
                       : fmt::format(
                             "checkpoint_copies: {} requested, but all ranks see one disk: "
                             "each shard is stored once",
                             copies);
  }
  std::string line =
      fmt::format("{} disks ({}): each keeps the shards of its ranks", count, listed(disks.names));
  if (copies == 1) return line + "; if a disk is lost, its part is lost (run.checkpoint_copies)";
  line += fmt::format(", and copies of those of {} more", std::min<int64_t>(copies, count) - 1);
  if (copies > count) line += fmt::format(" ({} requested)", copies - 1);
  return line;
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

void require_same_shape(const model::EncoderConfig& wanted, const model::EncoderConfig& found,
                        const std::string& place) {
  const auto same = [&](const char* key, int64_t here, int64_t there) {
    require(
        here == there,
        "{}: the run's model has {} {}, the checkpoint's has {}: use the recipe and model the run "
        "was started with (recipe.json in its folder)",
        place, key, here, there);
  };
  for (const auto& [key, size] : model::kSizeKeys) same(key, wanted.*size, found.*size);
  same(config_keys::kPreLayerNorm, wanted.choices.norm_before ? 1 : 0,
       found.choices.norm_before ? 1 : 0);
  require(wanted.family == found.family && wanted.choices == found.choices,
          "{}: the run's model is a {}, the checkpoint's is a {} or differs in its arithmetic: use "
          "the recipe and model the run was started with (recipe.json in its folder)",
          place, wanted.family, found.family);
}

namespace {

using optim::Phase;

std::string size_of(int64_t bytes) {
  return metrics::human_bytes(static_cast<double>(bytes));
}

// While a checkpoint is written, those that it replaces are still on the disk.
int64_t most_kept(const CheckpointSpace& space) {
  return std::min(space.to_come, space.keep_last + 1);
}

// What the disk must have beyond the `kept` checkpoints that exist, of first_bytes each.
struct Need {
  int64_t bytes = 0, checkpoints = 0;  // of the largest size, at the same time
};
Need most_needed(const CheckpointSpace& space, int64_t kept) {
  Need most;
  for (int64_t written = 1; written <= most_kept(space); ++written) {
    const int64_t old = std::clamp<int64_t>(space.keep_last + 1 - written, 0, kept);
    const int64_t bytes = written * space.largest_bytes() - (kept - old) * space.first_bytes;
    if (bytes > most.bytes) most = {bytes, written};
  }
  return most;
}

}  // namespace

int64_t checkpoint_copy_bytes(const ParameterTable& table, int64_t saved_bytes, int world_size,
                              bool writes_model) {
  const int64_t values = table.size_elements() * static_cast<int64_t>(sizeof(float));
  return (saved_bytes + world_size - 1) / world_size + (writes_model ? values : 0);
}

int64_t checkpoint_copy_bytes(engine::Engine& engine, int world_size, bool writes_model) {
  const optim::Optimizer& optimizer = engine.optimizer();
  int64_t shards = optimizer.saved_bytes(optimizer.phase());
  if (optimizer.phase() == Phase::kCompressed ||
      reaches_compressed_phase(engine.config(), engine.schedule())) {
    shards = std::max(shards, optimizer.saved_bytes(Phase::kCompressed));
  }
  return checkpoint_copy_bytes(engine.table(), shards, world_size, writes_model);
}

CheckpointSpace space_of_checkpoints(engine::Engine& engine, const SessionConfig& session,
                                     double share) {
  const optim::Optimizer& optimizer = engine.optimizer();
  // Files contain f32, whatever the compute type.
  const int64_t model_bytes =
      engine.table().parameter_count() * static_cast<int64_t>(sizeof(float));
  const auto saved_bytes = [&](Phase phase) {
    return model_bytes +
           static_cast<int64_t>(share * static_cast<double>(optimizer.saved_bytes(phase)));
  };
  CheckpointSpace space{.first_bytes = saved_bytes(optimizer.phase()),
                        .keep_last = session.keep_last};
  if (optimizer.phase() == Phase::kCompressed ||
      reaches_compressed_phase(engine.config(), engine.schedule())) {
    space.compressed_bytes = saved_bytes(Phase::kCompressed);
  }
  const int64_t done = engine.completed_steps(), steps = engine.config().run.steps;
  const int64_t every = session.checkpoint_every;
  if (done >= steps) return space;
  // A checkpoint is always written after the last step.
  space.to_come = 1;
  if (every > 0) space.to_come += (steps - 1) / every - done / every;
  return space;
}

std::string describe(const CheckpointSpace& space) {
  std::string text = size_of(space.first_bytes);
  if (space.compressed_bytes > space.first_bytes) {
    text += fmt::format(", {} after the freeze", size_of(space.compressed_bytes));
  }
  return text +
         fmt::format("; {} more will be written, the last {} are kept: up to {} more on the disk",
                     space.to_come, space.keep_last,
                     size_of(most_kept(space) * space.largest_bytes()));
}

std::string check_space(const CheckpointSpace& space, int64_t kept, int64_t free_bytes,
                        const std::string& place) {
  if (space.to_come == 0) return {};
  const int64_t largest = space.largest_bytes();
  require(free_bytes >= largest,
          "{}: {} are free, one checkpoint of this run takes {}: free space, or choose another "
          "--output",
          place, size_of(free_bytes), size_of(largest));
  const Need need = most_needed(space, kept);
  if (free_bytes >= need.bytes) return {};
  return fmt::format(
      "{}: {} are free, but {} are needed: this run will have {} of {} there at the same time: "
      "free space, or lower run.keep_last ({})",
      place, size_of(free_bytes), size_of(need.bytes), counted(need.checkpoints, "checkpoint"),
      size_of(largest), space.keep_last);
}

std::optional<int64_t> free_bytes_at(const std::filesystem::path& folder) {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(folder, error);
  // Some network file systems report zeros.
  if (error || space.capacity == 0 || space.capacity == static_cast<std::uintmax_t>(-1)) {
    return std::nullopt;
  }
  return static_cast<int64_t>(space.available);
}

}  // namespace onebit::training
