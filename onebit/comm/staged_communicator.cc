#include "onebit/comm/staged_communicator.h"

#include <algorithm>
#include <utility>

#include "onebit/device/memory.h"

namespace onebit::comm {
namespace {

template <typename Byte>
int64_t total_bytes(const std::vector<std::span<Byte>>& parts) {
  int64_t total = 0;
  for (const auto& part : parts) total += static_cast<int64_t>(part.size());
  return total;
}

// Copies messages to the host, sends them by the host's transport, and copies received ones back.
class StagedState final : public Request::State {
 public:
  StagedState(std::shared_ptr<StagingPool> pool, Communicator& host,
              const std::vector<std::span<const std::byte>>& send,
              std::vector<std::span<std::byte>> receive)
      : pool_(std::move(pool)),
        receive_(std::move(receive)),
        outgoing_(pool_->take(total_bytes(send))),
        incoming_(pool_->take(total_bytes(receive_))) {
    std::byte* to = outgoing_.data;
    for (const auto& part : send) {
      sizes_out_.push_back(static_cast<int64_t>(part.size()));
      memory::copy_beside(to, part.data(), sizes_out_.back());
      to += part.size();
    }
    for (const auto& part : receive_) sizes_in_.push_back(static_cast<int64_t>(part.size()));
    request_ = host.start_all_to_all_v(
        {.send = {outgoing_.data, static_cast<size_t>(total_bytes(send))},
         .send_bytes = sizes_out_,
         .receive = {incoming_.data, static_cast<size_t>(total_bytes(receive_))},
         .receive_bytes = sizes_in_});
  }
  ~StagedState() override {
    request_ = Request();  // abandons the transfer before its memory is returned
    pool_->give_back(outgoing_);
    pool_->give_back(incoming_);
  }

  bool test() override {
    if (!request_.test()) return false;
    complete();
    return true;
  }
  void wait() override {
    request_.wait();
    complete();
  }

 private:
  void complete() {
    const std::byte* from = incoming_.data;
    for (const auto& part : receive_) {
      memory::copy_beside(part.data(), from, static_cast<int64_t>(part.size()));
      from += part.size();
    }
  }

  std::shared_ptr<StagingPool> pool_;
  std::vector<std::span<std::byte>> receive_;
  StagingPool::Block outgoing_, incoming_;
  std::vector<int64_t> sizes_out_, sizes_in_;
  Request request_;
};

}  // namespace

StagingPool::~StagingPool() {
  for (const Block& block : free_) memory::release_staging(block.data);
}

StagingPool::Block StagingPool::take(int64_t size_bytes) {
  if (size_bytes == 0) return {};
  const std::lock_guard lock(mutex_);
  const auto fits = [&](const Block& block) { return block.size_bytes >= size_bytes; };
  const auto found = std::find_if(free_.begin(), free_.end(), fits);
  if (found == free_.end()) return {memory::allocate_staging(size_bytes), size_bytes};
  const Block block = *found;
  free_.erase(found);
  return block;
}

void StagingPool::give_back(Block block) {
  if (block.data == nullptr) return;
  const std::lock_guard lock(mutex_);
  free_.push_back(block);
}

std::unique_ptr<Communicator> StagedCommunicator::make_duplicate() {
  return std::make_unique<StagedCommunicator>(host().duplicate(), device());
}

std::unique_ptr<Communicator> StagedCommunicator::make_split(int color, const std::vector<int>&) {
  return std::make_unique<StagedCommunicator>(host().split(color), device());
}

std::unique_ptr<Request::State> StagedCommunicator::start_on_device(Messages messages) {
  return std::make_unique<StagedState>(pool_, host(), messages.send, std::move(messages.receive));
}

}  // namespace onebit::comm
