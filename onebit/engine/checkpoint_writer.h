// Writes checkpoints beside the training: the state is copied, then a thread of each rank writes
// its part, and one rank of each disk publishes what the disk holds once every rank has finished.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>

#include "onebit/base/json.h"
#include "onebit/comm/communicator.h"
#include "onebit/device/context.h"
#include "onebit/engine/checkpoint_folder.h"
#include "onebit/engine/disks.h"

namespace onebit::engine {

class StateShard;

struct CheckpointJob {
  std::string tag;
  int64_t step = 0;
  // state.json without the checksums of the files that are written; equal on every rank.
  Json state;
  std::shared_ptr<const StateShard> shard;  // this rank's
  // Fills the folder "model"; called on one rank of each disk.
  std::function<void(const Path&)> write_model;
  int64_t keep_last = 1;
  ProfileTrack* track = nullptr;  // where the writing is recorded
};

class CheckpointWriter {
 public:
  // Collective. Each rank writes into `folder` of its own disk; with `copies` above 1 also into
  // those of so many disks behind it, one less. `disks` lives as long.
  CheckpointWriter(comm::Communicator& communicator, Path folder, const Disks& disks,
                   int64_t copies);
  // Waits for the write in progress; its error would be lost, so call wait() first.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Waits for the previous write, then begins this one and returns. Every rank calls it in the same
  // order. Errors (of the previous write, on every rank alike): a full disk and the like, with the
  // rank.
  void start(CheckpointJob job);
  // Returns when nothing is being written. Errors: as for start().
  void wait();

 private:
  void write(const CheckpointJob& job);
  void write_parts(const CheckpointJob& job);
  void send_copies(const Path& partial);
  Json complete_state(const CheckpointJob& job, const Path& partial) const;
  void prune(int64_t keep_last) const;

  std::unique_ptr<comm::Communicator> communicator_;
  CheckpointFolder folder_;
  const Disks& disks_;
  int64_t copies_;
  std::future<void> running_;
};

}  // namespace onebit::engine
