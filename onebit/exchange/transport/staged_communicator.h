// Transfers device buffers through page-locked host memory and the host's transport: for an MPI
// without CUDA support, for several ranks on one device, and for tests without MPI.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "onebit/exchange/transport/device_communicator.h"

namespace onebit::transport {

// Page-locked memory that is reused for later messages of CUDA device `device_index`.
class StagingPool {
 public:
  explicit StagingPool(int device_index) : device_index_(device_index) {}
  ~StagingPool();
  StagingPool(const StagingPool&) = delete;
  StagingPool& operator=(const StagingPool&) = delete;

  struct Block {
    std::byte* data = nullptr;
    int64_t size_bytes = 0;
  };
  int device_index() const { return device_index_; }
  // A block of at least size_bytes, allocated if no free block is large enough.
  Block take(int64_t size_bytes);
  void give_back(Block block);

 private:
  int device_index_;
  std::mutex mutex_;
  std::vector<Block> free_;
};

class StagedCommunicator final : public DeviceCommunicator {
 public:
  using DeviceCommunicator::DeviceCommunicator;
  std::string_view transport() const override { return name_; }

 protected:
  std::unique_ptr<comm::Communicator> make_duplicate() override;
  std::unique_ptr<comm::Communicator> make_split(int color, const std::vector<int>&) override;
  std::unique_ptr<comm::Request::State> start_on_device(Messages messages) override;

 private:
  std::string name_ = fmt::format("{}, {}", host().transport(), name_of(DeviceTransport::kStaged));
  std::shared_ptr<StagingPool> pool_ = std::make_shared<StagingPool>(device().index);
};

}  // namespace onebit::transport
