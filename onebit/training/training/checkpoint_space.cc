#include "onebit/training/training/checkpoint_space.h"

#include "onebit/ground/base/wording.h"
#include "onebit/ground/metrics/human.h"
#include "onebit/training/training/optimizer_rows.h"

namespace onebit::training {
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
