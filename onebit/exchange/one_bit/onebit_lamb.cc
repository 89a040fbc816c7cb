#include "onebit/exchange/one_bit/onebit_lamb.h"

#include <algorithm>

#include "onebit/exchange/one_bit/onebit_adam.h"
#include "onebit/ground/base/json.h"
#include "onebit/math/device/memory.h"
#include "onebit/math/updates/lamb_update.h"

namespace onebit::optim {
namespace {

constexpr StateBuffer kMeanResidual{.name = "mean_residual",
                                    .extent = Extent::kOwned,
                                    .kept = Kept::kOwn,
                                    .on_other_ranks = OnOtherRanks::kOwner};

// The element of the share that is element `at` of the flat buffer.
int64_t place_in_share(std::span<const compress::OwnedRange> shares, int64_t at) {
  const auto ends_before = [&](const compress::OwnedRange& one) { return one.range.end <= at; };
  const auto share = std::partition_point(shares.begin(), shares.end(), ends_before);
  return share->place + at - share->range.begin;
}

// Cuts the owned ranges of a rank, each of which is in one of its shares, where tensors begin, into
// pieces of at most one block.
std::vector<updates::LambPart> parts_of(const std::vector<updates::LambTensor>& tensors,
                                        const OwnedMomentum& momentum) {
  std::vector<updates::LambPart> parts;
  for (const compress::OwnedRange& piece : momentum.owned_ranges()) {
    const auto ends_before = [](const updates::LambTensor& one, int64_t at) {
      return one.end <= at;
    };
    auto tensor = std::lower_bound(tensors.begin(), tensors.end(), piece.range.begin, ends_before);
    for (int64_t at = piece.range.begin; at < piece.range.end;) {
      const int64_t end = std::min({piece.range.end, tensor->end, at + kernels::kBlockElements});
      parts.push_back({.tensor = tensor - tensors.begin(),
                       .begin = at,
                       .end = end,
                       .owned = piece.place + at - piece.range.begin,
                       .in_share = place_in_share(momentum.topology().shares(), at)});
      if (end == tensor->end) ++tensor;
      at = end;
    }
  }
  std::sort(parts.begin(), parts.end(), [](const updates::LambPart& a, const updates::LambPart& b) {
    return a.begin < b.begin;
  });
  return parts;
}

// The first tensor that is in a part of the flat buffer.
int64_t first_in(std::span<const updates::LambTensor> tensors, Range part) {
  const auto ends_before = [&](const updates::LambTensor& one) { return one.end <= part.begin; };
  return std::partition_point(tensors.begin(), tensors.end(), ends_before) - tensors.begin();
}

// The tensors of the part, counted from its start.
std::vector<updates::LambTensor> tensors_in(std::span<const updates::LambTensor> tensors,
                                            Range part) {
  std::vector<updates::LambTensor> inside;
  for (size_t i = static_cast<size_t>(first_in(tensors, part));
       i < tensors.size() && tensors[i].begin < part.end; ++i) {
    inside.push_back({.begin = std::max(tensors[i].begin, part.begin) - part.begin,
                      .end = std::min(tensors[i].end, part.end) - part.begin,
                      .first_block = inside.empty() ? 0 : inside.back().end_block(),
                      .weight_decay = tensors[i].weight_decay,
                      .rate = tensors[i].rate});
  }
  return inside;
}

// The square of u without the workers' signs. It is an estimate, which would be far off if
// residuals of different workers were not independent: no step is more than twice as long as with
// signs.
double square_without_signs(const double* sums) {
  constexpr double kLeast = 0.25;
  return std::max(sums[1] + sums[2], kLeast * sums[1]);
}

}  // namespace

OneBitLambValues::OneBitLambValues(const LambOptions& options, const ParameterTable& table,
                                   const OwnedMomentum& momentum)
    : momentum_(momentum),
      lamb_(options, table),
      parts_(parts_of(lamb_.tensors({}), momentum)),
      sums_(Tensor::zeros(table.device(), DType::kF64,
                          {lamb_.ratios().elements(), updates::kLambSums})) {
  if (!table.device().is_cpu() && !parts_.empty()) {
    const auto size_bytes = static_cast<int64_t>(std::span(parts_).size_bytes());
    device_parts_ = Tensor::zeros(table.device(), DType::kU8, {size_bytes});
    copy(device_parts_.view(), ConstView(parts_.data(), DType::kU8, {size_bytes}, Device{}));
  }
  if (alone()) return;
  mean_residual_ = Tensor::zeros(table.device(), DType::kF32, {momentum.owned().elements()});
}

void OneBitLambValues::update(Context& context, ParameterTable& table, const Moments& moments,
                              AdamRule& adam, const StepInput& input) {
  lamb_.step(context, table, moments, adam, input);
}

void OneBitLambValues::begin_move(Context& context, const ParameterTable& table,
                                  const AdamRule& adam, const StepInput& input) {
  const std::vector<updates::LambTensor> tensors = lamb_.tensors(input.groups);
  updates::OnebitLambSquares args{.value = table.values(),
                                  .momentum = momentum_.owned(),
                                  .residual = {},
                                  .mean_residual = {},
                                  .sums = sums_.view(),
                                  .tensors = tensors,
                                  .parts = parts_,
                                  .parts_on_device = device_parts_.view(),
                                  .momentum_factor = 1 / adam.momentum_weight(),
                                  .beta1 = adam.beta1(input),
                                  .sources = momentum_.topology().sources()};
  if (!parts_.empty() && !alone()) {
    args.residual = momentum_.worker_residual();
    args.mean_residual = mean_residual_.view();
  }
  updates::onebit_lamb_squares(context, args);
  std::vector<double> sums(static_cast<size_t>(sums_.shape().elements()));
  copy(View::of(sums.data(), sums_.shape()), sums_.view());
  momentum_.topology().world().all_reduce(std::span<double>(sums), comm::Reduction::kSum);
  std::vector<float> ratios;
  for (const double* of_tensor = sums.data(); of_tensor != sums.data() + sums.size();
       of_tensor += updates::kLambSums) {
    ratios.push_back(updates::lamb_ratio(of_tensor[0], square_without_signs(of_tensor),
                                         lamb_.options().min_ratio, lamb_.options().max_ratio));
  }
  copy(lamb_.ratios(), View::of(ratios.data(), lamb_.ratios().shape()));
}

void OneBitLambValues::move(Context& context, ParameterTable& table, const AdamRule& adam,
                            const Movement& movement) {
  const Range range = movement.range;
  const std::vector<updates::LambTensor> all = lamb_.tensors(movement.groups);
  const std::vector<updates::LambTensor> tensors = tensors_in(all, range);
  const int64_t first = first_in(all, range);
  const int64_t last = first + static_cast<int64_t>(tensors.size());
  updates::onebit_lamb_step(context,
                            {.value = table.values().rows(range.begin, range.end),
                             .compute_value = table.compute_copy(range),
                             .momentum = movement.momentum,
                             .still = movement.still.rows(range.begin / 8, (range.end + 7) / 8),
                             .ratio = lamb_.ratios().rows(first, last),
                             .tensors = tensors,
                             .learning_rate = movement.learning_rate,
                             .momentum_factor = 1 / adam.momentum_weight()});
}

void OneBitLambValues::restart() {
  if (alone()) return;
  const View mean = mean_residual_.view();
  memory::fill_zero(mean.device(), mean.raw(), mean.size_bytes());
}

void OneBitLambValues::save(StateWriter& writer) const {
  if (alone()) return;
  writer.scalar("mean_residual_sources", momentum_.topology().sources());
  save_buffer(writer, kMeanResidual, mean_residual_.view());
}

// The residuals of other ranks have other means: those start again, and are right after the memory
// of the momentum.
void OneBitLambValues::load(const StateReader& reader) {
  restart();
  const Json sources = reader.scalar("mean_residual_sources");
  if (alone() || sources.is_null() || sources.get<int>() != momentum_.topology().sources()) return;
  load_buffer(reader, kMeanResidual, momentum_.topology(), mean_residual_.view());
}

StateLayout OneBitLambValues::layout(const ParameterTable& table, int sources) {
  StateLayout layout = LambRule::layout(table);
  layout.push_back({.name = "sums",
                    .extent = Extent::kNumber,
                    .numbers = updates::kLambSums * static_cast<int64_t>(table.entries().size()),
                    .type = DType::kF64});
  if (sources > 1) layout.push_back(kMeanResidual);
  return layout;
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
              [lamb = options.lamb](const ParameterTable& table, const OwnedMomentum& momentum) {
                return std::make_unique<OneBitLambValues>(lamb, table, momentum);
              },
          .values_layout = OneBitLambValues::layout});
}

std::shared_ptr<const OptimizerRecipe> read_onebit_lamb(Keys& params) {
  OneBitLambOptions options;
  options.lamb = read_lamb_options(params);
  options.freeze = read_freeze_options(params);
  options.exchange = read_exchange_options(params, options.lamb.adam.beta2);
  for (const char* key : {"coeff_beta", "factor_max", "factor_min", "factor_threshold"}) {
    params.without_effect(
        key, "corrects DeepSpeed's frozen trust ratios, where onebit computes exact ones");
  }
  return onebit_lamb_recipe(options);
}

}  // namespace onebit::optim
