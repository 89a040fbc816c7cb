// A run's folder of checkpoints: one `<root>/<tag>/` each, and the file `latest` that names the
// newest. A tag's folder is written as `<tag>.partial`, synced, renamed, and only then named in
// `latest`, so that a reader never finds an incomplete one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json_fwd.h"
#include "onebit/ground/base/partial_file.h"

namespace onebit::checkpoint {

// The file state.json of a checkpoint (docs/checkpoint-format.md): its own checksum, and one for
// each file that belongs to it.

// Adds the CRC-32C of all other keys, as compact JSON in their order, under the key "crc32c".
void add_checksum(Json& state);

// The contents of the checkpoint `folder`. A file without a checksum is accepted: it was edited.
// Errors: no such file, not JSON, another step than the folder's name or the saved counters have,
// contents that do not match the checksum, with which a run would silently continue differently.
Json read_checkpoint_state(const Path& folder);

// The number of ranks that the contents state. Error, naming `place`: outside [1, 2^20].
int world_size_of(const Json& state, const std::string& place);

// In state.json: the checksums of the checkpoint's safetensors files, by their names in its folder.
inline constexpr const char* kFilesOfCheckpoint = "files";

// "model/model.safetensors".
std::string model_file_name();
// The checksum that a file states for itself. Empty: none.
std::string stated_checksum(const Path& file);

// Error: the file `name` in `folder` is not the one that was written with this `state`, but another
// checkpoint's or another rank's. Accepted are a state without the checksum of this file, and a
// file that states none because another program has rewritten it.
void require_of_checkpoint(const Json& state, const Path& folder, const std::string& name);

class CheckpointFolder {
 public:
  explicit CheckpointFolder(Path root) : root_(std::move(root)) {}

  const Path& root() const { return root_; }
  Path folder(const std::string& tag) const { return root_ / tag; }
  Path partial_folder(const std::string& tag) const { return partial_path(folder(tag)); }

  // The tag in `latest`. Without that file the newest tag, empty if there is none. Error: `latest`
  // names a folder that does not exist.
  std::optional<std::string> latest() const;
  // The contents of the file `latest`, whether or not that checkpoint exists. Empty without it.
  std::optional<std::string> tag_in_latest() const;
  // Whether there is a folder of this name that is not left over from an interrupted write.
  bool holds(const std::string& tag) const;
  // The checkpoint from which a run would continue, judged by names: the tag in `latest`, or the
  // newest if that does not exist. Empty: there is no checkpoint.
  std::string newest() const;
  // Finished tags, oldest step first.
  std::vector<std::string> tags() const;
  // All tags except `tag`, newest step first.
  std::vector<std::string> tags_beside(const std::string& tag) const;

  // Only one rank of a disk calls the following. Makes an empty partial folder, and removes what
  // interrupted writes left behind.
  void begin(const std::string& tag) const;
  // Renames the partial folder to its final name (replacing a finished one of the same tag
  // atomically) and points `latest` at it.
  void publish(const std::string& tag) const;
  // Points `latest` at a finished tag, older or newer.
  void point_latest_at(const std::string& tag) const;
  // Keeps the newest `keep_last` tags and always the one in `latest`. Tags of later steps than that
  // (the run was reset to it) are all removed.
  void prune(int64_t keep_last) const;

 private:
  Path root_;
};

// Fails: `root` holds no checkpoint `tag`. The message lists the ones that it holds.
[[noreturn]] void refuse_absent_tag(const Path& root, const std::string& tag,
                                    const std::vector<std::string>& present);
// "global_step1200", DeepSpeed's default tag.
std::string tag_of_step(int64_t step);
// The inverse, or -1 for other names.
int64_t step_of_tag(const std::string& tag);

}  // namespace onebit::checkpoint
