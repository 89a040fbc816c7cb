// The optimizer's state in checkpoints and memory, and the return from its compressed phase.
#include <algorithm>
#include <cmath>

#include "onebit/exchange/comm/chunked.h"
#include "onebit/exchange/compress/bucket_size.h"
#include "onebit/exchange/optim/compressed_optimizer.h"
#include "onebit/exchange/optim/saved_state.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/log.h"

namespace onebit::optim {

void CompressedOptimizer::save(StateWriter& writer) const {
  ONEBIT_INVARIANT(!begun_ && !prepared_);
  save_state_name(writer, options_.name);
  writer.scalar("phase", std::string(name_of(phase())));
  writer.scalar("updates", updates_);
  writer.scalar("exp_avg_mask", Json(options_.exchange.moving_rows));
  freeze_rule_.save(writer);
  rule_.save(writer);
  if (phase() == Phase::kWarmup) {
    std::get<Moments>(state_).save(writer);
  } else {
    std::get<OwnVariance>(state_).save(writer);
    exchange_.save(writer);
    level_.save(writer);
    values_->save(writer);
  }
  if (local_) local_->save(writer, phase() == Phase::kCompressed, exchange_.owed_updates());
}

void CompressedOptimizer::load(Context& context, ParameterTable& table, const StateReader& reader) {
  check_state_name(reader, options_.name);
  const bool compressed = reader.scalar("phase") == std::string(name_of(Phase::kCompressed));
  require(!compressed || reader.scalar("exp_avg_mask") == Json(options_.exchange.moving_rows),
          "optimizer.params.exp_avg_mask is {}, but the checkpoint was frozen with {}: the set of "
          "held rows cannot change after the freeze",
          json_text(Json(options_.exchange.moving_rows)), json_text(reader.scalar("exp_avg_mask")));
  updates_ = reader.scalar("updates").get<int64_t>();
  freeze_rule_.load(reader);
  rule_.load(reader);
  level_.restart();
  begun_ = prepared_ = false;
  if (local_) exchange_.set_owed_updates(LocalUpdates::saved_owed_updates(reader));
  load_moments(table, reader, compressed);
  if (compressed && freeze_rule_.is_before(updates_)) return_to_warmup();
  if (local_) {
    local_->load(context, table, reader, phase() == Phase::kCompressed, updates_);
  }
}

void CompressedOptimizer::load_moments(const ParameterTable& table, const StateReader& reader,
                                       bool compressed) {
  if (compressed) return load_compressed(table, reader);
  if (phase() == Phase::kCompressed) state_ = release_normalized();
  std::get<Moments>(state_).load(reader);
  exchange_.clear_residuals();
}

void CompressedOptimizer::load_compressed(const ParameterTable& table, const StateReader& reader) {
  if (phase() == Phase::kWarmup) {
    // Between steps the gradients are not needed.
    hold_normalized(std::get<Moments>(std::move(state_)), table.gradients());
  }
  std::get<OwnVariance>(state_).load(reader, levels_);
  const std::vector<float> variances = levels_.gathered(variance());
  still_.restore(ConstView::of(variances.data(), {levels_.whole_elements()}));
  exchange_.load(reader, options_.adam.beta1);
  level_.load(reader);
  values_->load(reader);
}

void CompressedOptimizer::return_to_warmup() {
  std::vector<float> momenta = exchange_.collect_momentum(options_.adam.beta1);
  std::vector<float> variances(momenta.size());
  const View mean_variance = View::of(variances.data(), {static_cast<int64_t>(variances.size())});
  copy(mean_variance, variance());
  comm::sum_in_chunks(levels_.across(), variances);
  for (size_t i = 0; i < momenta.size(); ++i) {
    const double mean = double{variances[i]} / levels_.sources();
    momenta[i] = static_cast<float>(momenta[i] * (std::sqrt(mean) + options_.adam.epsilon));
    variances[i] = static_cast<float>(mean * rule_.variance_weight());
  }
  const std::vector<float> momentum =
      levels_.gathered(ConstView::of(momenta.data(), mean_variance.shape()));
  const std::vector<float> whole_variance = levels_.gathered(mean_variance);
  state_ = release_normalized();
  const Moments& moments = std::get<Moments>(state_);
  const Shape whole{levels_.whole_elements()};
  copy(moments.momentum.view(), ConstView::of(momentum.data(), whole));
  copy(moments.variance.view(), ConstView::of(whole_variance.data(), whole));
  level_.restart();
  if (communicator_.rank() == 0) {
    log_info("optimizer.params.freeze_step is later than update {}: the warm-up continues",
             updates_);
  }
}

int64_t CompressedOptimizer::saved_bytes(Phase phase) const {
  const int64_t buffer_bytes = levels_.whole_elements() * static_cast<int64_t>(sizeof(float));
  if (phase != Phase::kCompressed) return 2 * buffer_bytes;  // both moments
  const int64_t own_bytes = buffer_bytes + level_.saved_bytes();
  return levels_.sources() * own_bytes + exchange_.saved_bytes() + values_->saved_bytes() +
         (local_ ? local_->saved_bytes() : 0);
}

int64_t CompressedOptimizer::compressed_state_bytes() const {
  const auto* moments = std::get_if<Moments>(&state_);
  if (moments == nullptr) return state_bytes();
  // This rank's share of both moments.
  constexpr int64_t kShareBytes = 2 * sizeof(float);
  return state_bytes() - moments->size_bytes() + kShareBytes * levels_.elements();
}

int64_t CompressedOptimizer::state_bytes() const {
  const auto* moments = std::get_if<Moments>(&state_);
  return (moments ? moments->size_bytes() : variance().size_bytes()) +
         still_.bitmap().size_bytes() + level_.size_bytes() + agreement_.size_bytes() +
         exchange_.size_bytes() + levels_.size_bytes() + values_->size_bytes() +
         (local_ ? local_->size_bytes() : 0);
}

int64_t CompressedOptimizer::state_bytes_of(const CompressedOptions& options,
                                            const ParameterTable& table, int world_size,
                                            const RunFacts& run) {
  const int64_t elements = table.size_elements();
  const comm::Buckets buckets = compress::sized_buckets(elements, world_size, run.bucket_bytes);
  return Moments::size_bytes_of(table) + StillEntries::size_bytes_of(elements) +
         VarianceLevel::size_bytes_of(elements, world_size) +
         GradientAgreement::size_bytes_of(elements) +
         SignExchange::size_bytes_of(buckets, world_size) +
         options.values_bytes(table, world_size == 1 ? 0 : buckets.owned_elements(world_size, 0)) +
         (options.schedule ? LocalUpdates::size_bytes_of(table, world_size) : 0);
}

int64_t CompressedOptimizer::most_saved_bytes_of(const CompressedOptions& options,
                                                 const ParameterTable& table, int world_size,
                                                 bool compresses) {
  const int64_t elements = table.size_elements();
  const int64_t buffer_bytes = elements * static_cast<int64_t>(sizeof(float));
  const int64_t moments = 2 * buffer_bytes;
  if (!compresses) return moments;
  const int64_t own_bytes = buffer_bytes + VarianceLevel::saved_bytes_of(elements, world_size);
  const int64_t values_bytes = world_size == 1 ? 0 : options.values_saved_bytes * elements;
  return std::max(moments,
                  world_size * own_bytes + SignExchange::saved_bytes_of(elements, world_size) +
                      values_bytes +
                      (options.schedule ? LocalUpdates::saved_bytes_of(elements, world_size) : 0));
}

}  // namespace onebit::optim
