// Writes checkpoints while training continues: the state is copied, then a thread of each rank
// writes its part, and one rank of each disk publishes its parts once every rank has finished.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>

#include "onebit/exchange/checkpoint/checkpoint_folder.h"
#include "onebit/exchange/checkpoint/disks.h"
#include "onebit/exchange/comm/communicator.h"
#include "onebit/ground/base/json.h"
#include "onebit/math/device/context.h"

namespace onebit::checkpoint {

class StateShard;

struct CheckpointJob {
  std::string tag;
  int64_t step = 0;
  // state.json without the checksums of the files being written; equal on every rank.
  Json state;
  std::shared_ptr<const StateShard> shard;  // this rank's
  // Fills the folder "model"; called on one rank of each disk.
  std::function<void(const Path&)> write_model;
  int64_t keep_last = 1;
  ProfileTrack* track = nullptr;  // for the profile of the writing
};

class CheckpointWriter {
 public:
  // Collective. Each rank writes into `folder` of its own disk and, with `copies` above 1, into
  // those of the following `copies` - 1 disks. `disks` outlives this object.
  CheckpointWriter(comm::Communicator& communicator, Path folder, const Disks& disks,
                   int64_t copies);
  // Waits for the write in progress and ignores its error, so call wait() first.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Waits as wait_for_previous() does, then begins this write and returns. Every rank calls it in
  // the same order.
  void start(CheckpointJob job);
  // Returns when no write is in progress. If the last one failed, a warning says so, and the next
  // checkpoint takes its place. Errors: those of the last write, if the one before it failed too.
  void wait_for_previous();
  // Returns when no write is in progress. Errors (of the last write, identical on every rank, with
  // the failed rank): a full disk and the like.
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
  bool last_failed_ = false;
};

}  // namespace onebit::checkpoint
