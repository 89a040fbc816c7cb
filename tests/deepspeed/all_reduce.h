// DeepSpeed's compressed all-reduce for comparisons, with its bit order and padding: one RMS scale
// per tensor that counts the padding, padding to multiples of W * lcm(8, W) with its own residual,
// most significant bit first. Not pipelined and not fast. Training uses CompressedAllReduce.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/optim/state_layout.h"

namespace onebit::deepspeed {

// Elements after padding.
int64_t padded_elements(int64_t elements, int world_size);

// One tensor's state, on CPUs only.
class AllReduce {
 public:
  AllReduce(comm::Communicator& communicator, int64_t elements);

  // Replaces this rank's values [elements] with the compressed average, the same on every rank.
  void run(std::span<float> values);

  std::span<float> worker_residual() { return worker_residual_; }  // [padded elements]
  std::span<float> server_residual() { return server_residual_; }  // [padded elements / W]
  std::span<const float> worker_residual() const { return worker_residual_; }
  std::span<const float> server_residual() const { return server_residual_; }
  // Saves the residuals, under names that end in `suffix`. load() needs the same number of ranks.
  void save(optim::StateWriter&, const std::string& suffix = "") const;
  void load(const optim::StateReader&, const std::string& suffix = "");
  int64_t size_bytes() const;  // of the residuals
  // Scale and sign bytes of this rank in the last run, as worker and as server.
  float worker_scale() const { return worker_scale_; }
  float server_scale() const { return server_scale_; }
  std::span<const uint8_t> worker_signs() const { return worker_signs_; }
  std::span<const uint8_t> server_signs() const { return server_signs_; }

 private:
  comm::Communicator& communicator_;
  int64_t elements_, padded_elements_, chunk_elements_;
  std::vector<float> worker_residual_, server_residual_;
  std::vector<uint8_t> worker_signs_, server_signs_;
  float worker_scale_ = 0, server_scale_ = 0;
};

}  // namespace onebit::deepspeed
