#include "onebit/engine/checkpoint_writer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "onebit/base/clock.h"
#include "onebit/base/folder.h"
#include "onebit/base/log.h"
#include "onebit/base/run_files.h"
#include "onebit/device/profile.h"

namespace onebit::engine {
namespace {

constexpr size_t kMessageBytes = 1024;

// Runs `work`; afterwards every rank knows whether all of them succeeded. Error: the message of the
// lowest rank that failed, on every rank.
void run_on_all(comm::Communicator& communicator, const std::function<void()>& work) {
  std::array<char, kMessageBytes> message{};
  try {
    work();
  } catch (const std::exception& error) {
    std::strncpy(message.data(), error.what(), kMessageBytes - 1);
    if (message[0] == '\0') message[0] = '?';
  }
  std::vector<char> all(kMessageBytes * static_cast<size_t>(communicator.world_size()));
  communicator.all_gather(std::as_bytes(std::span(message)),
                          std::as_writable_bytes(std::span(all)));
  for (int rank = 0; rank < communicator.world_size(); ++rank) {
    const char* text = all.data() + kMessageBytes * static_cast<size_t>(rank);
    if (*text != '\0') fail("checkpoint not written, rank {}: {}", rank, text);
  }
}

}  // namespace

CheckpointWriter::CheckpointWriter(comm::Communicator& communicator, Path folder)
    : communicator_(communicator.duplicate()), folder_(std::move(folder)) {
  communicator_->count_inside_node_apart();  // what it sends beside a step is none of the step's
}

CheckpointWriter::~CheckpointWriter() {
  if (running_.valid()) running_.wait();
}

void CheckpointWriter::start(CheckpointJob job) {
  wait();
  running_ = std::async(std::launch::async, [this, job = std::move(job)] { write(job); });
}

void CheckpointWriter::wait() {
  if (running_.valid()) running_.get();
}

// The new checkpoint is complete by now, so an old one that cannot be removed is only a warning.
void CheckpointWriter::prune(int64_t keep_last) const {
  try {
    folder_.prune(keep_last);
  } catch (const std::exception& error) {
    log_warning("an old checkpoint could not be removed: {}", error.what());
  }
}

void CheckpointWriter::write(const CheckpointJob& job) {
  const PhaseSpan phase(job.track, "write checkpoint");
  const bool first = communicator_->rank() == 0;
  const Path partial = folder_.partial_folder(job.tag);
  const Stopwatch watch;
  try {
    run_on_all(*communicator_, [&] {
      if (first) folder_.begin(job.tag);
    });
    run_on_all(*communicator_, [&] {
      job.shard->write(partial);
      if (!first) return;
      make_folder(partial / run_files::kModel);
      job.write_model(partial / run_files::kModel);
      write_file_atomically(partial / run_files::kState, job.state.dump(2) + "\n");
    });
    run_on_all(*communicator_, [&] {
      if (!first) return;
      folder_.publish(job.tag);
      prune(job.keep_last);
    });
    log_debug("checkpoint {} written in {:.2f} s", job.tag, watch.seconds());
  } catch (...) {
    std::error_code ignored;
    if (first) std::filesystem::remove_all(partial, ignored);
    throw;
  }
}

}  // namespace onebit::engine
