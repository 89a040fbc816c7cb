#include "onebit/optim/onebit_lamb.h"

#include <algorithm>
#include <numbers>

#include "onebit/ops/lamb_update_formula.h"
#include "onebit/optim/compressed_recipe.h"

namespace onebit::optim {
namespace {

// Cuts the owned ranges of a rank where tensors begin, into pieces of at most one block.
std::vector<ops::LambPart> parts_of(const std::vector<ops::LambTensor>& tensors,
                                    std::span<const compress::OwnedRange> owned) {
  std::vector<ops::LambPart> parts;
  for (const compress::OwnedRange& piece : owned) {
    const auto ends_before = [](const ops::LambTensor& one, int64_t at) { return one.end <= at; };
    auto tensor = std::lower_bound(tensors.begin(), tensors.end(), piece.range.begin, ends_before);
    for (int64_t at = piece.range.begin; at < piece.range.end;) {
      const int64_t end = std::min({piece.range.end, tensor->end, at + kernels::kBlockElements});
      parts.push_back({.tensor = tensor - tensors.begin(),
                       .begin = at,
                       .end = end,
                       .owned = piece.place + at - piece.range.begin});
      if (end == tensor->end) ++tensor;
      at = end;
    }
  }
  std::sort(parts.begin(), parts.end(),
            [](const ops::LambPart& a, const ops::LambPart& b) { return a.begin < b.begin; });
  return parts;
}

// The first tensor that is in a part of the flat buffer.
int64_t first_in(std::span<const ops::LambTensor> tensors, Range part) {
  const auto ends_before = [&](const ops::LambTensor& one) { return one.end <= part.begin; };
  return std::partition_point(tensors.begin(), tensors.end(), ends_before) - tensors.begin();
}

// The tensors of the part, counted from its start.
std::vector<ops::LambTensor> tensors_in(std::span<const ops::LambTensor> tensors, Range part) {
  std::vector<ops::LambTensor> inside;
  for (size_t i = static_cast<size_t>(first_in(tensors, part));
       i < tensors.size() && tensors[i].begin < part.end; ++i) {
    inside.push_back({.begin = std::max(tensors[i].begin, part.begin) - part.begin,
                      .end = std::min(tensors[i].end, part.end) - part.begin,
                      .first_block = inside.empty() ? 0 : inside.back().end_block(),
                      .weight_decay = tensors[i].weight_decay});
  }
  return inside;
}

// Sums per tensor: of values, u and residuals.
constexpr int64_t kSumsOfTensor = 3;

// For a gradient of Gaussian elements, as noise is. Signs at pi / 2 times the mean absolute value
// leave pi / 2 - 1 of the square of the coded values, the last residual included.
constexpr double kLeft = std::numbers::pi / 2 - 1;
constexpr double kResidualOfNoise = kLeft / (1 - kLeft);

// The square of u without the contribution of the workers' signs to the momentum. A worker has sent
// all its gradients except its residual r, so the momentum lacks (1 - beta1) (r - the previous
// running mean of r), averaged over ranks. Residuals of one worker are uncorrelated between
// updates, those of several with each other and with the gradients, so squares add up:
// ((1 - beta1) / ranks)^2 (1 + (1 - beta1) / (1 + beta1)) = ((1 - beta1) / ranks)^2 2 / (1 + beta1)
// times the sum of r^2. `residual` is that sum, in units of u. If few elements dominate a gradient,
// the residual is correlated with it and the term is too large: no more is subtracted than is right
// for gradients of noise only, whose momentum has (1 - beta1) / (1 + beta1) of their square.
double square_without_signs(double square, double residual, int ranks, double beta1) {
  const double noise = (1 - beta1) * (1 - beta1) * 2 / (1 + beta1) * residual / (ranks * ranks);
  const double most = 2 * (1 - beta1) * kResidualOfNoise;  // relative to the exact square
  return square - std::min(noise, most / (1 + most) * square);
}

}  // namespace

OneBitLambValues::OneBitLambValues(const LambOptions& options, const params::Table& table,
                                   const SignExchange& exchange)
    : exchange_(exchange),
      lamb_(options, table),
      parts_(parts_of(lamb_.tensors(), exchange.owned_ranges())),
      residual_parts_(parts_of(lamb_.tensors(), exchange.levels().shares())),
      squares_(Tensor::zeros(table.device(), DType::kF64,
                             {static_cast<int64_t>(lamb_.tensors().size()), 2})),
      residual_squares_(Tensor::zeros(table.device(), DType::kF64,
                                      {static_cast<int64_t>(lamb_.tensors().size())})) {}

void OneBitLambValues::update(Context& context, params::Table& table, const Moments& moments,
                              AdamRule& adam, const StepInput& input) {
  lamb_.step(context, table, moments, adam, input);
}

void OneBitLambValues::begin_move(Context& context, const params::Table& table,
                                  const AdamRule& adam, double beta1) {
  const double momentum_factor = 1 / adam.momentum_weight();
  ops::onebit_lamb_squares(context, {.value = table.values(),
                                     .momentum = exchange_.owned_momentum(),
                                     .squares = squares_.view(),
                                     .tensors = lamb_.tensors(),
                                     .parts = parts_,
                                     .momentum_factor = momentum_factor});
  if (exchange_.levels().sources() > 1) {
    ops::onebit_lamb_residual(context, {.residual = exchange_.worker_residual(),
                                        .squares = residual_squares_.view(),
                                        .tensors = lamb_.tensors(),
                                        .parts = residual_parts_});
  }
  const size_t tensors = lamb_.tensors().size();
  std::vector<double> sums(kSumsOfTensor * tensors);
  double* const residuals = sums.data() + 2 * tensors;
  copy(View::of(sums.data(), squares_.shape()), squares_.view());
  copy(View::of(residuals, residual_squares_.shape()), residual_squares_.view());
  exchange_.levels().world().all_reduce(std::span<double>(sums), comm::Reduction::kSum);
  std::vector<float> ratios;
  for (size_t i = 0; i < tensors; ++i) {
    const double residual = residuals[i] * momentum_factor * momentum_factor;
    const double direction =
        square_without_signs(sums[2 * i + 1], residual, exchange_.levels().sources(), beta1);
    ratios.push_back(ops::lamb_ratio(sums[2 * i], direction, lamb_.options().min_ratio,
                                     lamb_.options().max_ratio));
  }
  copy(lamb_.ratios(), View::of(ratios.data(), lamb_.ratios().shape()));
}

void OneBitLambValues::move(Context& context, params::Table& table, const AdamRule& adam,
                            const Movement& movement) {
  const Range range = movement.range;
  const std::vector<ops::LambTensor> tensors = tensors_in(lamb_.tensors(), range);
  const int64_t first = first_in(lamb_.tensors(), range);
  const int64_t last = first + static_cast<int64_t>(tensors.size());
  ops::onebit_lamb_step(context,
                        {.value = table.values().rows(range.begin, range.end),
                         .compute_value = table.compute_copy(range),
                         .momentum = movement.momentum,
                         .still = movement.still.rows(range.begin / 8, (range.end + 7) / 8),
                         .ratio = lamb_.ratios().rows(first, last),
                         .tensors = tensors,
                         .learning_rate = movement.learning_rate,
                         .momentum_factor = 1 / adam.momentum_weight()});
}

int64_t OneBitLambValues::size_bytes() const {
  return lamb_.size_bytes() + squares_.view().size_bytes() + residual_squares_.view().size_bytes();
}

int64_t OneBitLambValues::size_bytes_of(const params::Table& table, const LambOptions& options) {
  return lamb_ratio_bytes(table, options) +
         kSumsOfTensor * static_cast<int64_t>(sizeof(double) * table.entries().size());
}

std::shared_ptr<const OptimizerRecipe> onebit_lamb_recipe(const OneBitLambOptions& options) {
  return std::make_shared<CompressedRecipe>(
      CompressedTitle{.title = "1-bit LAMB", .description = describe(options.lamb)},
      CompressedOptions{
          .name = "onebit_lamb",
          .adam = options.lamb.adam,
          .freeze = options.freeze,
          .exchange = options.exchange,
          .values =
              [lamb = options.lamb](const params::Table& table, const SignExchange& exchange) {
                return std::make_unique<OneBitLambValues>(lamb, table, exchange);
              },
          .values_bytes =
              [lamb = options.lamb](const params::Table& table) {
                return OneBitLambValues::size_bytes_of(table, lamb);
              }});
}

std::shared_ptr<const OptimizerRecipe> read_onebit_lamb(Keys& params) {
  OneBitLambOptions options;
  options.lamb = read_lamb_options(params);
  options.freeze = read_freeze_options(params);
  options.exchange = read_exchange_options(params, options.lamb.adam.beta2);
  for (const char* key : {"coeff_beta", "factor_max", "factor_min", "factor_threshold"}) {
    params.without_effect(key,
                          "corrects DeepSpeed's frozen trust ratios; onebit computes exact ones");
  }
  return onebit_lamb_recipe(options);
}

}  // namespace onebit::optim
