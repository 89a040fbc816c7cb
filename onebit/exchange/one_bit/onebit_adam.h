// 1-bit Adam (Tang et al., arXiv 2102.02888) with arithmetic that follows Adam where the published
// algorithm falls behind: docs/compression.md explains why and by how much.
//
// Warm-up: Adam on averaged gradients. At its end the momentum is divided by d = sqrt(v / cv) +
// eps and v by cv, where cm, cv = 1 - products of the betas so far (1 without bias correction).
// From then on, with this rank's gradient g:
//   y = g / d                                        each rank with its own d
//   a = average over ranks of sign(y + e) s          at its owner, e: what has not been sent yet
//   m = beta1 m + (1 - beta1) a                      at its owner
//   momentum = sign(m + lead (m - m before) + e') s'  from its owner to all
//   value -= lr (momentum / cm + weight_decay value)
// Workers send gradients instead of momenta. So the owner's momentum smooths the noise of the signs
// as it smooths the gradient's, and no momentum is overwritten by its transmitted signs, which
// would lack for ten updates what a sign cannot represent. With the scales s a small signal is
// transmitted nearly completely, and the lead compensates the rest (compress/sign_codec.cc):
// Adam becomes unstable if gradients are late by a step or two.
//
// updates::onebit_normalize keeps updating d: its shape within 256 elements follows this rank's own
// gradients (1 / ranks as fast in rows that are looked up, which are rare on one rank), and its
// level follows the gradients of all ranks, which are sent in turns as one number per block.
// noise_ratio.h tracks the ratio between a rank's squared gradient and the average's.
//
// On two levels (optim/topology.h) g is the mean over a node. All of this is done for a rank's
// share of the parameters, whose values are then sent to the rest of the node. The warm-up is the
// same.
//
// compressed_optimizer.h makes the updates, also for the related optimizers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onebit/exchange/one_bit/compressed_optimizer.h"
#include "onebit/ground/base/dtype.h"
#include "onebit/math/device/context.h"

namespace onebit::optim {

// The recipe of an optimizer that compresses every update after its warm-up: 1-bit Adam and 1-bit
// LAMB.
struct CompressedTitle {
  std::string_view title;     // OptimizerRecipe::title()
  std::string description;    // OptimizerRecipe::describe()
  bool follows_adam = false;  // its updates are meant to equal Adam's
};

class CompressedRecipe final : public OptimizerRecipe {
 public:
  CompressedRecipe(CompressedTitle title, CompressedOptions options)
      : title_(std::move(title)), options_(std::move(options)) {}

  std::string_view title() const override { return title_.title; }
  std::string describe() const override { return title_.description; }
  double learning_rate() const override { return options_.adam.learning_rate; }
  std::unique_ptr<Optimizer> make(const ParameterTable&, comm::Communicator&,
                                  const RunFacts&) const override;
  StateLayout state_layout(const ParameterTable&, const StateDivision&) const override;
  std::vector<std::pair<std::string, std::string>> rows(const RunFacts&,
                                                        int world_size) const override;
  std::vector<std::string> warnings(const RunFacts&) const override;
  std::optional<int64_t> last_dense_update(const RunFacts&) const override;
  const AdamOptions* followed_adam() const override {
    return title_.follows_adam ? &options_.adam : nullptr;
  }

 private:
  CompressedTitle title_;
  CompressedOptions options_;
};

struct OneBitAdamOptions {
  AdamOptions adam;
  FreezeOptions freeze;
  ExchangeOptions exchange;
};

std::shared_ptr<const OptimizerRecipe> onebit_adam_recipe(const OneBitAdamOptions& options);
std::shared_ptr<const OptimizerRecipe> read_onebit_adam(Keys& params);

// How long the passes over the parameters take (updates/onebit_adam_update.h), for the forecast of
// a step: processor seconds per element in the compressed phase, excluding coding.
struct OneBitAdamTiming {
  double bucket_seconds = 0;  // for a bucket, before it is sent and after it has arrived
  double step_seconds = 0;    // after all have arrived
};

// Measures on this machine, on buffers with a multiple of 16 `elements`. steady_seconds() times
// each pass. `exchanging` is the context of the thread that exchanges buckets, `computing` the
// context of the step. Both are on the same device.
OneBitAdamTiming measure_onebit_adam(Context& exchanging, Context& computing, DType compute_type,
                                     int64_t elements, int world_size);

}  // namespace onebit::optim
