#include <cmath>

#include "onebit/base/log.h"
#include "onebit/comm/chunked.h"
#include "onebit/optim/onebit_adam.h"
#include "onebit/optim/own_buffer.h"
#include "onebit/optim/state_name.h"

namespace onebit::optim {
namespace {

constexpr const char* kName = "onebit_adam";

void restore(View buffer, const params::StateReader& reader, const char* name, int rank) {
  const std::vector<float> values = own_buffer(reader, name, rank, buffer.elements());
  copy(buffer, ConstView::of(values.data(), buffer.shape()));
}

}  // namespace

void OneBitAdam::save(params::StateWriter& writer) const {
  ONEBIT_INVARIANT(!begun_);
  const bool compressed = phase_ == Phase::kCompressed;
  save_state_name(writer, kName);
  writer.scalar("phase", std::string(name_of(phase_)));
  writer.scalar("updates", updates_);
  writer.scalar("travels", "gradient");
  writer.scalar("exp_avg_mask", Json(config_.moving_rows));
  freeze_rule_.save(writer);
  if (!compressed) return moments_.save(writer);
  moments_.save_own_variance(writer);
  exchange_->save(writer);
  writer.scalar("exchanges", exchanges_);
  noise_.save(writer);
  if (alone()) return;
  writer.own("energy", energy_.view());
  writer.own("sketch", sketch_.view());
  writer.own("block_energy", block_energy_.view());
}

void OneBitAdam::load(Context&, params::Table&, const params::StateReader& reader) {
  check_state_name(reader, kName);
  const bool compressed = reader.scalar("phase") == std::string(name_of(Phase::kCompressed));
  require(
      !compressed || reader.scalar("exp_avg_mask") == Json(config_.moving_rows),
      "optimizer.params.exp_avg_mask is {}, but the checkpoint was frozen with {}: which rows are "
      "held cannot change after the freeze",
      Json(config_.moving_rows).dump(), reader.scalar("exp_avg_mask").dump());
  require(!compressed || !reader.scalar("travels").is_null(),
          "the checkpoint was made in the compressed phase of an older onebit, whose 1-bit Adam "
          "exchanged momentum: go on from a checkpoint of its warm-up (--resume TAG), or start a "
          "new run from its model (--initialize-from)");
  updates_ = reader.scalar("updates").get<int64_t>();
  freeze_rule_.load(reader);
  begun_ = false;
  exchanges_ = 0;
  phase_ = compressed ? Phase::kCompressed : Phase::kWarmup;
  if (!compressed) return moments_.load(reader);
  load_compressed(reader);
  if (freeze_rule_.is_before(updates_)) thaw();
}

void OneBitAdam::thaw() {
  std::vector<float> momenta = exchange_->collect_momentum(config_.beta1);
  std::vector<float> variances(momenta.size());
  copy(View::of(variances.data(), variance().shape()), variance());
  comm::sum_in_chunks(communicator_, variances);
  const double weight = moments_.variance_weight(config_);
  for (size_t i = 0; i < momenta.size(); ++i) {
    const double mean = double{variances[i]} / communicator_.world_size();
    momenta[i] = static_cast<float>(momenta[i] * (std::sqrt(mean) + config_.epsilon));
    variances[i] = static_cast<float>(mean * weight);
  }
  copy(momentum(), ConstView::of(momenta.data(), momentum().shape()));
  copy(variance(), ConstView::of(variances.data(), variance().shape()));
  phase_ = Phase::kWarmup;
  exchanges_ = 0;
  if (communicator_.rank() == 0) {
    log_info(
        "optimizer.params.freeze_step lies beyond update {}: 1-bit Adam goes back to its warm-up",
        updates_);
  }
}

void OneBitAdam::load_compressed(const params::StateReader& reader) {
  const int rank = communicator_.rank(), world_size = communicator_.world_size();
  moments_.load_own_variance(reader, communicator_);
  still_.restore(variance());
  exchange_->load(reader, config_.beta1);
  noise_.load(reader);
  if (alone()) return;
  show_ratios();
  // What was added up for a cycle of other ranks is not theirs: the next cycle begins.
  if (reader.saved_world_size() != world_size) return;
  exchanges_ = reader.scalar("exchanges").get<int64_t>();
  restore(energy_.view(), reader, "energy", rank);
  restore(sketch_.view(), reader, "sketch", rank);
  restore(block_energy_.view(), reader, "block_energy", rank);
}

int64_t OneBitAdam::saved_bytes(Phase phase) const {
  if (phase != Phase::kCompressed) return moments_.size_bytes();
  int64_t own = variance().size_bytes();
  for (const Tensor* tensor : {&energy_, &sketch_, &block_energy_}) {
    own += tensor->view().size_bytes();
  }
  return communicator_.world_size() * own + exchange_->saved_bytes();
}

int64_t OneBitAdam::state_bytes() const {
  int64_t bytes = moments_.size_bytes() + still_.bitmap().size_bytes() + exchange_->size_bytes();
  for (const Tensor* tensor : {&own_weight_, &energy_, &ratio_, &sketch_, &mean_sketch_,
                               &block_energy_, &block_variance_, &square_, &flags_}) {
    bytes += tensor->view().size_bytes();
  }
  return bytes;
}

int64_t OneBitAdam::wire_bytes_sent() const {
  return exchange_->wire_bytes_sent();
}

}  // namespace onebit::optim
