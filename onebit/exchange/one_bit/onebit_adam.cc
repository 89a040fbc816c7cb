// The recipe of 1-bit Adam. The update is in compressed_optimizer.cc.
#include "onebit/exchange/one_bit/onebit_adam.h"

#include <algorithm>

#include "onebit/exchange/compress/sign_codec.h"
#include "onebit/exchange/one_bit/owned_momentum.h"
#include "onebit/ground/base/clock.h"
#include "onebit/math/kernels/blocks.h"
#include "onebit/math/ops/elementwise.h"
#include "onebit/math/tensor/tensor.h"
#include "onebit/math/updates/onebit_adam_update.h"

namespace onebit::optim {

std::unique_ptr<Optimizer> CompressedRecipe::make(const ParameterTable& table,
                                                  comm::Communicator& communicator,
                                                  const RunFacts& run) const {
  return std::make_unique<CompressedOptimizer>(options_, table, communicator, run);
}

StateLayout CompressedRecipe::state_layout(const ParameterTable& table,
                                           const StateDivision& division) const {
  return CompressedOptimizer::layout(options_, table, division);
}

std::vector<std::pair<std::string, std::string>> CompressedRecipe::rows(const RunFacts& run,
                                                                        int world_size) const {
  return compressed_phase_rows(options_.freeze, options_.adam.beta2, run, world_size);
}

std::vector<std::string> CompressedRecipe::warnings(const RunFacts& run) const {
  return freeze_warnings(options_.freeze, options_.adam.beta2, run);
}

std::optional<int64_t> CompressedRecipe::last_dense_update(const RunFacts& run) const {
  return last_warmup_update(options_.freeze, options_.adam.beta2, run);
}

std::shared_ptr<const OptimizerRecipe> onebit_adam_recipe(const OneBitAdamOptions& options) {
  return std::make_shared<CompressedRecipe>(
      CompressedTitle{
          .title = "1-bit Adam", .description = describe(options.adam), .follows_adam = true},
      CompressedOptions{.name = "onebit_adam",
                        .adam = options.adam,
                        .freeze = options.freeze,
                        .exchange = options.exchange});
}

std::shared_ptr<const OptimizerRecipe> read_onebit_adam(Keys& params) {
  OneBitAdamOptions options;
  options.adam = read_adam_options(params);
  options.freeze = read_freeze_options(params);
  options.exchange = read_exchange_options(params, options.adam.beta2);
  return onebit_adam_recipe(options);
}

namespace {

// The buffers of a compressed phase that has had no gradients yet.
class Passes {
 public:
  Passes(Device device, DType compute_type, int64_t elements, int world_size)
      : elements_(elements), blocks_(kernels::blocks_in(elements)), alone_(world_size == 1) {
    for (Tensor* tensor : {&value_, &gradient_, &variance_, &normalized_}) {
      *tensor = Tensor::zeros(device, DType::kF32, {elements});
    }
    if (alone_) {
      momentum_ = Tensor::zeros(device, DType::kF32, {elements});
    } else {
      chunk_ = Tensor::zeros(device, DType::kU8, {compress::chunk_bytes(elements)});
    }
    if (compute_type != DType::kF32) copy_ = Tensor::zeros(device, compute_type, {elements});
    for (Tensor* tensor : {&own_weight_, &energy_}) {
      *tensor = Tensor::zeros(device, DType::kF32, {blocks_ * kernels::kSubBlocks});
    }
    for (Tensor* tensor : {&extra_, &ratio_, &sketch_, &block_energy_, &block_variance_}) {
      *tensor = Tensor::zeros(device, DType::kF32, {blocks_});
    }
    square_ = Tensor::zeros(device, DType::kF64, {blocks_});
    flags_ = Tensor::zeros(device, DType::kU8, {blocks_});
    still_ = Tensor::zeros(device, DType::kU8, {compress::sign_bytes(elements)});
  }

  // The variance is all ones, so there are no still entries.
  void start(Context& context) {
    ops::fill(context, variance_.view(), 1.0f);
    ops::fill(context, gradient_.view(), 1.0f);
    ops::fill(context, ratio_.view(), 1.0f);
  }

  void around_the_exchange(Context& context) {
    updates::onebit_normalize(context, {.gradient = gradient_.view(),
                                        .value = value_.view(),
                                        .ranges = {},
                                        .variance = variance_.view(),
                                        .normalized = normalized_.view(),
                                        .extra = extra_.view(),
                                        .own_weight = own_weight_.view(),
                                        .block_ratio = ratio_.view(),
                                        .energy = energy_.view(),
                                        .sketch = sketch_.view(),
                                        .block_energy = block_energy_.view(),
                                        .block_variance = block_variance_.view(),
                                        .block_square = square_.view(),
                                        .block_flags = flags_.view(),
                                        .begin = 0,
                                        .end = elements_,
                                        .sketch_key = 1,
                                        .alone = alone_});
    updates::onebit_momentum(context,
                             {.momentum = alone_ ? momentum_.view() : View(),
                              .variance = variance_.view(),
                              .normalized = alone_ ? ConstView(normalized_.view()) : ConstView(),
                              .extra = alone_ ? ConstView() : ConstView(extra_.view()),
                              .begin = 0,
                              .end = elements_});
  }

  void step(Context& context) {
    if (alone_) return move(context, {0, elements_}, momentum_.view());
    const int64_t part = OwnedMomentum::blocks_of_part(context, blocks_);
    for (int64_t first = 0; first < blocks_; first += part) {
      const compress::BlockRange now{first, std::min(first + part, blocks_)};
      const Range range = compress::elements_of(now, elements_);
      const View momentum = normalized_.view().rows(0, range.elements());
      compress::decode(context, {.chunk = chunk_.view(),
                                 .elements = elements_,
                                 .still = still_.view(),
                                 .values = momentum,
                                 .extras = {},
                                 .blocks = now});
      move(context, range, momentum);
    }
  }

 private:
  void move(Context& context, Range range, ConstView momentum) {
    const auto& [begin, end] = range;
    const updates::UpdateRange all{0, end - begin, 0.01};
    updates::onebit_step(context,
                         {.value = value_.view().rows(begin, end),
                          .compute_value = copy_.empty() ? View() : copy_.view().rows(begin, end),
                          .momentum = momentum,
                          .still = still_.view().rows(begin / 8, (end + 7) / 8),
                          .ranges = std::span(&all, 1),
                          .learning_rate = 1e-3});
  }

  int64_t elements_, blocks_;
  bool alone_;
  Tensor value_, copy_, gradient_, variance_, normalized_;
  Tensor momentum_;  // of a single rank. With several ranks its received, coded form:
  Tensor chunk_;
  Tensor own_weight_, energy_, extra_, ratio_, sketch_, block_energy_, block_variance_;
  Tensor square_, flags_, still_;
};

}  // namespace

OneBitAdamTiming measure_onebit_adam(Context& exchanging, Context& computing, DType compute_type,
                                     int64_t elements, int world_size) {
  Passes passes(computing.device(), compute_type, elements, world_size);
  passes.start(computing);
  computing.synchronize();
  const auto seconds_of = [&](Context& context, void (Passes::*pass)(Context&)) {
    const auto run = [&] {
      (passes.*pass)(context);
      context.synchronize();
    };
    return steady_seconds(run) / static_cast<double>(elements);
  };
  const double bucket = seconds_of(exchanging, &Passes::around_the_exchange);
  return {.bucket_seconds = bucket, .step_seconds = seconds_of(computing, &Passes::step)};
}

}  // namespace onebit::optim
