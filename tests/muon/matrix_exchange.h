// Exchanges matrices at one bit per element, with onebit's codec and error feedback on both sides:
// every rank sends each matrix to its owner, which computes an update from the average and sends it
// to all ranks. On CPUs, after the backward pass.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/math/device/context.h"
#include "onebit/math/tensor/tensor.h"

namespace onebit::muon {

class MatrixExchange {
 public:
  // elements[i]: the elements of matrix i, which belongs to rank i % ranks.
  MatrixExchange(comm::Communicator& communicator, const std::vector<int64_t>& elements);

  // Replaces the average of matrix `matrix`, f32 [elements], with the values to be sent.
  using OwnerStep = std::function<void(size_t matrix, View average)>;

  // Overwrites this rank's matrices[i], f32 [elements], with the values that the owner sent, the
  // same bits on every rank. Values must be finite. Collective.
  void run(Context& context, std::span<const View> matrices, const OwnerStep& owner_step);

 private:
  struct Matrix {
    int64_t elements = 0;
    int owner = 0;
    int64_t place = 0;  // of its chunk in the message to or from its owner
    Tensor worker_residual, owner_residual;
  };

  void send(Context& context, std::span<const View> matrices);
  void reduce(Context& context, std::span<const View> matrices, const OwnerStep& owner_step);
  void receive(Context& context, std::span<const View> matrices);

  comm::Communicator& communicator_;
  std::vector<Matrix> matrices_;
  std::vector<int64_t> message_bytes_, message_places_;  // of each owner
  std::vector<std::byte> to_owners_, from_workers_, mine_, from_owners_;
  Tensor decoded_;
};

}  // namespace onebit::muon
