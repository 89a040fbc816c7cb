#include "onebit/exchange/optim/variance_level.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "onebit/exchange/comm/bucket.h"
#include "onebit/exchange/optim/saved_state.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/log.h"
#include "onebit/math/device/memory.h"
#include "onebit/math/ops/elementwise.h"

namespace onebit::optim {
namespace {

std::vector<float> host_copy(const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.shape().elements()));
  copy(View::of(values.data(), tensor.shape()), tensor.view());
  return values;
}

void restore(const Tensor& buffer, const StateReader& reader, const char* name, int rank) {
  const std::vector<float> values = own_buffer(reader, name, rank, buffer.shape().elements());
  copy(buffer.view(), ConstView::of(values.data(), buffer.shape()));
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

}  // namespace

VarianceLevel::VarianceLevel(const ParameterTable& table, const Levels& levels)
    : levels_(levels), noise_(comm::blocks_in(table.size_elements()), levels.sources()) {
  if (alone()) return;
  const Device device = table.device();
  const int64_t blocks = comm::blocks_in(levels.elements());
  const std::vector<float> weights =
      levels.share_of_blocks(own_weights(table, levels.sources()), kernels::kSubBlocks);
  own_weight_ = Tensor::zeros(device, DType::kF32, {blocks * kernels::kSubBlocks});
  copy(own_weight_.view(), ConstView::of(weights.data(), own_weight_.shape()));
  energy_ = Tensor::zeros(device, DType::kF32, own_weight_.shape());
  energy_before_ = Tensor::zeros(device, DType::kF32, own_weight_.shape());
  for (Tensor* tensor : {&ratio_, &sketch_, &sketch_before_, &arrived_, &block_energy_,
                         &block_energy_before_, &block_variance_}) {
    *tensor = Tensor::zeros(device, DType::kF32, {blocks});
  }
  show_ratios();
}

void VarianceLevel::show_ratios() {
  const std::vector<float> ratios = levels_.share_of_blocks(noise_.ratios(), 1);
  copy(ratio_.view(), ConstView::of(ratios.data(), ratio_.shape()));
}

void VarianceLevel::restart() {
  exchanges_ = updates_ = 0;
  left_at_ = {};
  noise_.restart();
  if (alone()) return;
  for (const Tensor* tensor : {&energy_, &sketch_, &arrived_, &block_energy_}) {
    const View view = tensor->view();
    memory::fill_zero(view.device(), view.raw(), view.size_bytes());
  }
  show_ratios();
}

void VarianceLevel::begin_update() const {
  if (alone()) return;
  copy(energy_before_.view(), energy_.view());
  copy(sketch_before_.view(), sketch_.view());
  copy(block_energy_before_.view(), block_energy_.view());
}

void VarianceLevel::take_back_update() const {
  if (alone()) return;
  copy(energy_.view(), energy_before_.view());
  copy(sketch_.view(), sketch_before_.view());
  copy(block_energy_.view(), block_energy_before_.view());
}

void VarianceLevel::prepare(ops::OnebitNormalize& args, double variance_memory,
                            bool exchanges) const {
  args.own_weight = own_weight_.view();
  args.block_ratio = ratio_.view();
  args.energy = energy_.view();
  args.sketch = sketch_.view();
  args.block_energy = block_energy_.view();
  args.block_variance = block_variance_.view();
  args.beta2 = variance_memory;
  for (int64_t sub_block = 0; sub_block < kernels::kSubBlocks; ++sub_block) {
    args.energy_updates[static_cast<size_t>(sub_block)] = updates_since(sub_block);
  }
  args.turn = exchanges ? turn() : ops::kNoTurn;
  args.sketch_key = static_cast<uint64_t>(updates_ + 1);
  args.alone = alone();
}

void VarianceLevel::receive(Context& context, ConstView extra, int64_t begin) const {
  if (alone()) return;
  const int64_t first = begin / kernels::kBlockElements;
  ops::cast(context, {.from = extra, .to = arrived_.view().rows(first, first + extra.elements())});
}

void VarianceLevel::end_exchange(Context& context, View variance, double variance_memory) {
  const bool ends_cycle = turn() == kSketchTurn;
  if (!alone() && !ends_cycle) {
    const auto updates = static_cast<double>(updates_since(turn()));
    ops::onebit_momentum(context, {.momentum = {},
                                   .variance = variance,
                                   .normalized = {},
                                   .extra = arrived_.view(),
                                   .begin = 0,
                                   .end = variance.elements(),
                                   .turn_memory = std::pow(variance_memory, updates),
                                   .turn = turn()});
  }
  ++updates_;
  left_at_[static_cast<size_t>(turn())] = updates_;
  ++exchanges_;
  if (alone() || !ends_cycle) return;
  // The ratios of groups of blocks are those of whole buffers, whatever the shares.
  const auto whole = [&](const Tensor& share) { return levels_.gathered_blocks(host_copy(share)); };
  const std::vector<float> energy = whole(block_energy_), sums = whole(block_variance_);
  const std::vector<float> sketch = whole(arrived_);
  noise_.follow(levels_.across(), {.energy = energy, .variance = sums, .sketch = sketch});
  ops::fill(context, block_energy_.view(), 0.0f);
  show_ratios();
}

void VarianceLevel::save(StateWriter& writer) const {
  noise_.save(writer);
  if (alone()) return;
  writer.scalar("exchanges", exchanges_);
  writer.scalar("turns", Json{{"updates", updates_}, {"left_at", left_at_}});
  writer.own("energy", energy_.view());
  writer.own("sketch", sketch_.view());
  writer.own("block_energy", block_energy_.view());
}

void VarianceLevel::load(const StateReader& reader) {
  restart();
  noise_.load(reader);
  if (alone()) return;
  show_ratios();
  const compress::Ownership before = saved_ownership(reader, levels_.whole_elements());
  const compress::Ownership& now = levels_.ownership();
  const bool same_shares = before.nodes == now.nodes && (!now.nodes || before == now);
  if (before.world_size != now.world_size || !same_shares) {
    if (levels_.world().rank() == 0 && before.world_size == now.world_size &&
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
  const int rank = levels_.world().rank();
  restore(energy_, reader, "energy", rank);
  restore(sketch_, reader, "sketch", rank);
  restore(block_energy_, reader, "block_energy", rank);
}

int64_t VarianceLevel::size_bytes_of(int64_t elements, int world_size) {
  if (world_size == 1) return 0;
  constexpr int64_t kOfSubBlocks = 3, kOfBlocks = 7;  // number of buffers
  const int64_t numbers = kOfSubBlocks * kernels::kSubBlocks + kOfBlocks;
  return comm::blocks_in(elements) * numbers * static_cast<int64_t>(sizeof(float));
}

int64_t VarianceLevel::size_bytes() const {
  if (alone()) return 0;
  int64_t bytes = 0;
  for (const Tensor* tensor :
       {&own_weight_, &energy_, &energy_before_, &ratio_, &sketch_, &sketch_before_, &arrived_,
        &block_energy_, &block_energy_before_, &block_variance_}) {
    bytes += tensor->view().size_bytes();
  }
  return bytes;
}

int64_t VarianceLevel::saved_bytes_of(int64_t elements, int sources) {
  if (sources == 1) return 0;
  // Per block: the energies of its sub-blocks, its sketch and its energy.
  constexpr int64_t kNumbers = kernels::kSubBlocks + 2;
  return comm::blocks_in(elements) * kNumbers * static_cast<int64_t>(sizeof(float));
}

int64_t VarianceLevel::saved_bytes() const {
  return saved_bytes_of(levels_.whole_elements(), alone() ? 1 : levels_.sources());
}

}  // namespace onebit::optim
