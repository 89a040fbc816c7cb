#include "onebit/exchange/one_bit/normalized_gradients.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "onebit/exchange/comm/bucket.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/log.h"
#include "onebit/math/device/memory.h"
#include "onebit/math/ops/elementwise.h"
#include "onebit/math/ops/reduce.h"

namespace onebit::optim {
namespace {

template <typename T>
void read_into(std::vector<T>& host, const View& view) {
  copy(View::of(host.data(), view.shape()), view);
}

double sum_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

std::vector<float> host_copy(const View& view) {
  std::vector<float> values(static_cast<size_t>(view.elements()));
  copy(View::of(values.data(), {view.elements()}), view);
  return values;
}

void fill(const View& view, const std::vector<float>& values) {
  copy(view, ConstView::of(values.data(), {view.elements()}));
}

// Rows that are looked up get most of their gradient from the few samples that contain their word.
// A source has too few of them to estimate their variance, so its own gradients count 1 / sources.
std::vector<float> own_weights(const ParameterTable& table, int sources) {
  const int64_t blocks = comm::blocks_in(table.size_elements());
  std::vector<float> weights(static_cast<size_t>(blocks * kernels::kSubBlocks), 1.0f);
  for (const Parameter& parameter : table.parameters()) {
    if (!parameter.declaration.lookup) continue;
    const int64_t first = parameter.range.begin / kernels::kSubBlockElements;
    const int64_t last = (parameter.range.end - 1) / kernels::kSubBlockElements;
    std::fill(weights.begin() + first, weights.begin() + last + 1,
              1.0f / static_cast<float>(sources));
  }
  return weights;
}

// Rows [begin, end) of a buffer that may be empty.
View rows_of(const View& buffer, int64_t begin, int64_t end) {
  return buffer.empty() ? View() : buffer.rows(begin, end);
}

ConstView rows_of(const ConstView& buffer, int64_t begin, int64_t end) {
  return buffer.empty() ? ConstView() : buffer.rows(begin, end);
}

}  // namespace

// The buffers are in the order of Buffer.
StateLayout GradientAgreement::layout() {
  return {{.name = "block_square", .extent = Extent::kShareBlocks, .type = DType::kF64},
          {.name = "block_flags", .extent = Extent::kShareBlocks, .type = DType::kU8}};
}

GradientAgreement::GradientAgreement(const Topology& topology, Device device)
    : topology_(topology), state_(layout(), topology, device) {
  const int64_t blocks = comm::blocks_in(topology.elements());
  host_square_.resize(static_cast<size_t>(blocks));
  host_flags_.resize(static_cast<size_t>(blocks));
  block_scale_.resize(static_cast<size_t>(blocks), 1.0);
  bucket_square_.resize(static_cast<size_t>(topology.buckets().count()));
  limited_square_.resize(bucket_square_.size());
}

double GradientAgreement::scale(Context& context, ConstView gradients, const StepInput& input,
                                int64_t bucket) {
  const auto index = static_cast<size_t>(bucket);
  const Range range = topology_.buckets().range(bucket);
  double scale = input.gradient_scale;
  if (!input.norm_limits.empty()) {
    ONEBIT_INVARIANT(input.norm_limits.size() == bucket_square_.size());
    const Range in_buffer = topology_.in_buffer(bucket);
    const double own =
        scale * scale * ops::squared_norm(context, gradients.rows(in_buffer.begin, in_buffer.end));
    const double square = topology_.sum(own);
    const double limit = input.norm_limits[index], norm = std::sqrt(square);
    const double coefficient = norm > limit ? limit / norm : 1;
    // A non-finite value becomes NaN when it is multiplied by 0, so the following pass finds it.
    // Finite values of such a bucket change nothing.
    const bool finite = std::isfinite(square);
    bucket_square_[index] = own;
    limited_square_[index] = finite ? coefficient * coefficient * own : 0;
    scale = finite ? coefficient * scale : 0;
  }
  const auto first = block_scale_.begin() + range.begin / comm::kBlockElements;
  std::fill(first, first + comm::blocks_in(range.elements()), scale);
  return scale;
}

void GradientAgreement::prepare(updates::OnebitNormalize& args) const {
  args.block_square = state_[kSquare];
  args.block_flags = state_[kFlags];
}

std::span<const uint8_t> GradientAgreement::read_flags() {
  read_into(host_flags_, state_[kFlags]);
  return host_flags_;
}

// With limits the squares of the buckets are exchanged, too: later limits are computed from them.
GradientAgreement::Result GradientAgreement::agree(const StepInput& input, bool touched) {
  enum Sum : size_t { kNotFinite, kTouched, kSquares, kLimitedSquares, kBuckets };
  read_into(host_square_, state_[kSquare]);
  std::vector<double> sums(kBuckets, 0.0);
  if (input.norm_limits.empty()) {
    sums[kSquares] = sums[kLimitedSquares] = sum_of(host_square_);
  } else {
    sums[kSquares] = sum_of(bucket_square_);
    sums[kLimitedSquares] = sum_of(limited_square_);
    sums.insert(sums.end(), bucket_square_.begin(), bucket_square_.end());
  }
  bool finite = std::isfinite(sums[kSquares]);
  for (const uint8_t flags : host_flags_)
    finite = finite && (flags & updates::kBlockNotFinite) == 0;
  for (double& one : sums) one = std::isfinite(one) ? one : 0;
  sums[kNotFinite] = finite ? 0 : 1;
  sums[kTouched] = touched ? 1 : 0;
  topology_.world().all_reduce(std::span<double>(sums), comm::Reduction::kSum);
  for (size_t at = kSquares; at < sums.size(); ++at) sums[at] /= topology_.sources();
  return {.finite = sums[kNotFinite] == 0,
          .touched = sums[kTouched] > 0,
          .square = sums[kSquares],
          .limited_square = sums[kLimitedSquares],
          .bucket_squares = {sums.begin() + kBuckets, sums.end()}};
}

// In the order of Buffer. The measures of the noise are in noise_ratio.h.
StateLayout VarianceSums::layout(int sources) {
  if (sources == 1) return {};
  constexpr Extent kBlocks = Extent::kShareBlocks;
  return {{.name = "energy", .extent = kBlocks, .numbers = kernels::kSubBlocks, .kept = Kept::kOwn},
          {.name = "sketch", .extent = kBlocks, .kept = Kept::kOwn},
          {.name = "block_energy", .extent = kBlocks, .kept = Kept::kOwn},
          {.name = "own_weight", .extent = kBlocks, .numbers = kernels::kSubBlocks},
          {.name = "ratio", .extent = kBlocks},
          {.name = "arrived_extra", .extent = kBlocks},
          {.name = "block_variance", .extent = kBlocks},
          {.name = "energy_before", .extent = kBlocks, .numbers = kernels::kSubBlocks},
          {.name = "sketch_before", .extent = kBlocks},
          {.name = "block_energy_before", .extent = kBlocks}};
}

VarianceSums::VarianceSums(const ParameterTable& table, const Topology& topology)
    : topology_(topology),
      noise_(comm::blocks_in(table.size_elements()), topology.sources()),
      state_(layout(topology.sources()), topology, table.device()) {
  if (alone()) return;
  fill(state_[kOwnWeight],
       topology.share_of_blocks(own_weights(table, topology.sources()), kernels::kSubBlocks));
  show_ratios();
}

void VarianceSums::show_ratios() {
  fill(state_[kRatio], topology_.share_of_blocks(noise_.ratios(), 1));
}

void VarianceSums::restart() {
  exchanges_ = updates_ = 0;
  left_at_ = {};
  noise_.restart();
  if (alone()) return;
  for (const Buffer buffer : {kEnergy, kSketch, kBlockEnergy, kArrived}) {
    const View view = state_[buffer];
    memory::fill_zero(view.device(), view.raw(), view.size_bytes());
  }
  show_ratios();
}

void VarianceSums::begin_update() const {
  if (alone()) return;
  copy(state_[kEnergyBefore], state_[kEnergy]);
  copy(state_[kSketchBefore], state_[kSketch]);
  copy(state_[kBlockEnergyBefore], state_[kBlockEnergy]);
}

void VarianceSums::take_back_update() const {
  if (alone()) return;
  copy(state_[kEnergy], state_[kEnergyBefore]);
  copy(state_[kSketch], state_[kSketchBefore]);
  copy(state_[kBlockEnergy], state_[kBlockEnergyBefore]);
}

void VarianceSums::prepare(updates::OnebitNormalize& args, double variance_memory,
                           bool exchanges) const {
  args.own_weight = state_[kOwnWeight];
  args.block_ratio = state_[kRatio];
  args.energy = state_[kEnergy];
  args.sketch = state_[kSketch];
  args.block_energy = state_[kBlockEnergy];
  args.block_variance = state_[kBlockVariance];
  args.beta2 = variance_memory;
  for (int64_t sub_block = 0; sub_block < kernels::kSubBlocks; ++sub_block) {
    args.energy_updates[static_cast<size_t>(sub_block)] = updates_since(sub_block);
  }
  args.turn = exchanges ? turn() : updates::kNoTurn;
  args.sketch_key = static_cast<uint64_t>(updates_ + 1);
  args.alone = alone();
}

void VarianceSums::end_exchange(Context& context, View variance, double variance_memory) {
  const bool ends_cycle = turn() == kSketchTurn;
  if (!alone() && !ends_cycle) {
    const auto updates = static_cast<double>(updates_since(turn()));
    updates::onebit_momentum(context, {.momentum = {},
                                       .variance = variance,
                                       .normalized = {},
                                       .extra = state_[kArrived],
                                       .begin = 0,
                                       .end = variance.elements(),
                                       .turn_memory = std::pow(variance_memory, updates),
                                       .turn = turn()});
  }
  ++updates_;
  left_at_[static_cast<size_t>(turn())] = updates_;
  ++exchanges_;
  if (alone() || !ends_cycle) return;
  // The ratios of groups of blocks are the ratios of whole buffers, whatever the shares.
  const auto whole = [&](Buffer share) {
    return topology_.gathered_blocks(host_copy(state_[share]));
  };
  const std::vector<float> energy = whole(kBlockEnergy), sums = whole(kBlockVariance);
  const std::vector<float> sketch = whole(kArrived);
  noise_.follow(topology_.across(), {.energy = energy, .variance = sums, .sketch = sketch});
  ops::fill(context, state_[kBlockEnergy], 0.0f);
  show_ratios();
}

void VarianceSums::save(StateWriter& writer) const {
  noise_.save(writer);
  if (alone()) return;
  writer.scalar("exchanges", exchanges_);
  writer.scalar("turns", Json{{"updates", updates_}, {"left_at", left_at_}});
  state_.save(writer);
}

void VarianceSums::load(const StateReader& reader) {
  restart();
  noise_.load(reader);
  if (alone()) return;
  show_ratios();
  const compress::Ownership before = saved_ownership(reader, topology_.whole_elements());
  const compress::Ownership& now = topology_.ownership();
  const bool same_shares = before.nodes == now.nodes && (!now.nodes || before == now);
  if (before.world_size != now.world_size || !same_shares) {
    if (topology_.world().rank() == 0 && before.world_size == now.world_size &&
        before.nodes == now.nodes) {
      log_info(
          "run.bucket_mb differs from the checkpoint's: the level of the second moments is "
          "measured again, so the run continues, but not bit for bit");
    }
    return;
  }
  exchanges_ = reader.scalar("exchanges").get<int64_t>();
  const Json turns = reader.scalar("turns");
  updates_ = turns.at("updates").get<int64_t>();
  left_at_ = turns.at("left_at").get<std::array<int64_t, kTurns>>();
  state_.load(reader, topology_);
}

void cut_to_bucket(updates::OnebitNormalize& args, Range in_buffer) {
  const int64_t begin = args.begin, end = args.end;
  const int64_t first = begin / kernels::kBlockElements;
  const int64_t last = first + kernels::blocks_in(end - begin);
  const int64_t first_sub = first * kernels::kSubBlocks, last_sub = last * kernels::kSubBlocks;
  args.gradient = args.gradient.rows(in_buffer.begin, in_buffer.end);
  args.value = args.value.rows(in_buffer.begin, in_buffer.end);
  args.variance = args.variance.rows(begin, end);
  args.own_weight = rows_of(args.own_weight, first_sub, last_sub);
  args.energy = rows_of(args.energy, first_sub, last_sub);
  args.block_ratio = rows_of(args.block_ratio, first, last);
  for (View* blocks : {&args.sketch, &args.block_energy, &args.block_variance, &args.block_square,
                       &args.block_flags}) {
    *blocks = rows_of(*blocks, first, last);
  }
  args.begin = 0;
  args.end = end - begin;
  args.sketch_shift = in_buffer.begin;
}

}  // namespace onebit::optim
