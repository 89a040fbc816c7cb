#include "onebit/exchange/transport/staged_communicator.h"

#include <algorithm>
#include <utility>

#include "onebit/math/device/memory.h"

namespace onebit::transport {
namespace {

// Where parts of device memory lie in a block of host memory. Parts that follow each other in
// device memory, for example the pieces of a bucket, are one run and one copy. A part that goes to
// every rank lies in the block once.
template <typename Byte>
class StagedParts {
 public:
  struct Run {
    Byte* device;
    int64_t offset, size_bytes;
  };

  explicit StagedParts(const std::vector<std::span<Byte>>& parts) {
    const std::span<Byte>* last = nullptr;
    for (const auto& part : parts) {
      const bool repeats = last != nullptr && !part.empty() && part.data() == last->data() &&
                           part.size() == last->size();
      if (!repeats) {
        add(part);
        if (!part.empty()) last = &part;
      }
      offsets_.push_back(size_bytes_ - static_cast<int64_t>(part.size()));
    }
  }

  int64_t size_bytes() const { return size_bytes_; }
  const std::vector<Run>& runs() const { return runs_; }
  // The parts in a block of host memory.
  std::vector<std::span<Byte>> in(std::byte* block,
                                  const std::vector<std::span<Byte>>& parts) const {
    std::vector<std::span<Byte>> there(parts.size());
    for (size_t i = 0; i < parts.size(); ++i) {
      if (!parts[i].empty()) there[i] = {block + offsets_[i], parts[i].size()};
    }
    return there;
  }

 private:
  void add(std::span<Byte> part) {
    if (part.empty()) return;
    const auto bytes = static_cast<int64_t>(part.size());
    if (!runs_.empty() && runs_.back().device + runs_.back().size_bytes == part.data()) {
      runs_.back().size_bytes += bytes;
    } else {
      runs_.push_back({part.data(), size_bytes_, bytes});
    }
    size_bytes_ += bytes;
  }

  std::vector<Run> runs_;
  std::vector<int64_t> offsets_;
  int64_t size_bytes_ = 0;
};

// Copies messages to the host, sends them by the host's transport, and copies received ones back.
class StagedState final : public comm::Request::State {
 public:
  // `send`, `receive`: in device memory.
  StagedState(std::shared_ptr<StagingPool> pool,
              const std::vector<std::span<const std::byte>>& send,
              const std::vector<std::span<std::byte>>& receive)
      : pool_(std::move(pool)),
        sent_(send),
        received_(receive),
        outgoing_(pool_->take(sent_.size_bytes())),
        incoming_(pool_->take(received_.size_bytes())) {
    for (const auto& run : sent_.runs()) {
      memory::copy_beside(pool_->device_index(), outgoing_.data + run.offset, run.device,
                          run.size_bytes);
    }
  }
  ~StagedState() override {
    transfer_.reset();  // abandons the transfer before its memory is returned
    pool_->give_back(outgoing_);
    pool_->give_back(incoming_);
  }

  std::vector<std::span<const std::byte>> outgoing(
      const std::vector<std::span<const std::byte>>& send) const {
    return sent_.in(outgoing_.data, send);
  }
  std::vector<std::span<std::byte>> incoming(
      const std::vector<std::span<std::byte>>& receive) const {
    return received_.in(incoming_.data, receive);
  }
  void set_transfer(std::unique_ptr<comm::Request::State> transfer) {
    transfer_ = std::move(transfer);
  }

  bool test() override {
    if (!transfer_->test()) return false;
    complete();
    return true;
  }
  void wait() override {
    transfer_->wait();
    complete();
  }

 private:
  void complete() {
    for (const auto& run : received_.runs()) {
      memory::copy_beside(pool_->device_index(), run.device, incoming_.data + run.offset,
                          run.size_bytes);
    }
  }

  std::shared_ptr<StagingPool> pool_;
  StagedParts<const std::byte> sent_;
  StagedParts<std::byte> received_;
  StagingPool::Block outgoing_, incoming_;
  std::unique_ptr<comm::Request::State> transfer_;
};

}  // namespace

StagingPool::~StagingPool() {
  for (const Block& block : free_) memory::release_staging(device_index_, block.data);
}

StagingPool::Block StagingPool::take(int64_t size_bytes) {
  if (size_bytes == 0) return {};
  const std::lock_guard lock(mutex_);
  const auto fits = [&](const Block& block) { return block.size_bytes >= size_bytes; };
  const auto found = std::find_if(free_.begin(), free_.end(), fits);
  if (found == free_.end())
    return {memory::allocate_staging(device_index_, size_bytes), size_bytes};
  const Block block = *found;
  free_.erase(found);
  return block;
}

void StagingPool::give_back(Block block) {
  if (block.data == nullptr) return;
  const std::lock_guard lock(mutex_);
  free_.push_back(block);
}

std::unique_ptr<comm::Communicator> StagedCommunicator::make_duplicate() {
  return std::make_unique<StagedCommunicator>(host().duplicate(), device());
}

std::unique_ptr<comm::Communicator> StagedCommunicator::make_split(int color,
                                                                   const std::vector<int>&) {
  return std::make_unique<StagedCommunicator>(host().split(color), device());
}

std::unique_ptr<comm::Request::State> StagedCommunicator::start_on_device(Messages messages) {
  auto state = std::make_unique<StagedState>(pool_, messages.send, messages.receive);
  state->set_transfer(start_on(host(), {.operation = messages.operation,
                                        .send = state->outgoing(messages.send),
                                        .receive = state->incoming(messages.receive)}));
  return state;
}

}  // namespace onebit::transport
