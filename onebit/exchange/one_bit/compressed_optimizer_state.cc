// The optimizer's state in checkpoints and memory, and the return from its compressed phase.
#include <cmath>

#include "onebit/exchange/comm/collectives.h"
#include "onebit/exchange/one_bit/compressed_optimizer.h"
#include "onebit/exchange/optim/state_layout.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/log.h"

namespace onebit::optim {

void CompressedOptimizer::save(StateWriter& writer) const {
  ONEBIT_INVARIANT(!begun_ && !prepared_);
  save_state_name(writer, options_.name);
  writer.scalar("phase", std::string(name_of(phase())));
  writer.scalar("updates", updates_);
  writer.scalar("exp_avg_mask", Json(options_.exchange.moving_rows));
  const Json held = still_.held_by_table();
  if (!held.is_null()) writer.scalar("held_entries", held);
  freeze_rule_.save(writer);
  rule_.save(writer);
  if (phase() == Phase::kWarmup) {
    std::get<Moments>(state_).save(writer);
  } else {
    std::get<OwnVariance>(state_).save(writer);
    momentum_.save(writer);
    variance_sums_.save(writer);
    values_->save(writer);
  }
  if (local_) local_->save(writer, phase() == Phase::kCompressed, momentum_.owed_updates());
}

void CompressedOptimizer::load(Context& context, ParameterTable& table, const StateReader& reader) {
  check_state_name(reader, options_.name);
  const bool compressed = reader.scalar("phase") == std::string(name_of(Phase::kCompressed));
  require(!compressed || reader.scalar("exp_avg_mask") == Json(options_.exchange.moving_rows),
          "optimizer.params.exp_avg_mask is {}, but the checkpoint was frozen with {}: the set of "
          "held rows cannot change after the freeze",
          json_text(Json(options_.exchange.moving_rows)), json_text(reader.scalar("exp_avg_mask")));
  require(!compressed || reader.scalar("held_entries") == still_.held_by_table(),
          "the state was frozen with another exp_avg_mask: the set of held entries cannot change "
          "after the freeze");
  updates_ = reader.scalar("updates").get<int64_t>();
  freeze_rule_.load(reader);
  rule_.load(reader);
  variance_sums_.restart();
  begun_ = prepared_ = false;
  if (local_) momentum_.set_owed_updates(LocalUpdates::saved_owed_updates(reader));
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
  momentum_.clear_residuals();
}

void CompressedOptimizer::load_compressed(const ParameterTable& table, const StateReader& reader) {
  if (phase() == Phase::kWarmup) {
    // Between steps the gradients are not needed.
    hold_normalized(std::get<Moments>(std::move(state_)), table.gradients());
  }
  std::get<OwnVariance>(state_).load(reader, topology_);
  const std::vector<float> variances = topology_.gathered(variance());
  still_.restore(ConstView::of(variances.data(), {topology_.whole_elements()}));
  momentum_.load(reader, options_.adam.beta1);
  if (local_ && alone()) {
    local_->load_sums(reader, options_.adam.beta1, momentum_.owned());
  }
  variance_sums_.load(reader);
  values_->load(reader);
}

void CompressedOptimizer::return_to_warmup() {
  std::vector<float> momenta = momentum_.collect(options_.adam.beta1);
  std::vector<float> variances(momenta.size());
  const View mean_variance = View::of(variances.data(), {static_cast<int64_t>(variances.size())});
  copy(mean_variance, variance());
  comm::sum_in_chunks(topology_.across(), variances);
  for (size_t i = 0; i < momenta.size(); ++i) {
    const double mean = double{variances[i]} / topology_.sources();
    momenta[i] = static_cast<float>(momenta[i] * (std::sqrt(mean) + options_.adam.epsilon));
    variances[i] = static_cast<float>(mean * rule_.variance_weight());
  }
  const std::vector<float> momentum =
      topology_.gathered(ConstView::of(momenta.data(), mean_variance.shape()));
  const std::vector<float> whole_variance = topology_.gathered(mean_variance);
  state_ = release_normalized();
  const Moments& moments = std::get<Moments>(state_);
  const Shape whole{topology_.whole_elements()};
  copy(moments.momentum.view(), ConstView::of(momentum.data(), whole));
  copy(moments.variance.view(), ConstView::of(whole_variance.data(), whole));
  variance_sums_.restart();
  if (communicator_.rank() == 0) {
    log_info("optimizer.params.freeze_step is later than update {}: the warm-up continues",
             updates_);
  }
}

// In the order of Buffer.
StateLayout CompressedOptimizer::bucket_layout() {
  return {{.name = "normalized", .extent = Extent::kBucket},
          {.name = "extras", .extent = Extent::kBucketBlocks}};
}

StateLayout CompressedOptimizer::layout(const CompressedOptions& options,
                                        const ParameterTable& table,
                                        const StateDivision& division) {
  const compress::Ownership& ownership = division.ownership;
  const int sources = ownership.sources();
  StateLayout layout = Moments::layout();
  append(layout, OwnVariance::layout());
  append(layout, OwnedMomentum::layout(sources));
  append(layout, bucket_layout());
  append(layout, NoiseRatio::layout());
  append(layout, VarianceSums::layout(sources));
  append(layout, options.values_layout(table, sources));
  if (options.schedule) {
    const int64_t share = ownership.share_buckets(division.rank).elements();
    append(layout, LocalUpdates::layout(sources, share));
  }
  append(layout, GradientAgreement::layout());
  append(layout, StillEntries::layout(table.size_elements()));
  if (ownership.nodes) {
    layout.push_back({.name = "received_in_node",
                      .extent = Extent::kBucket,
                      .numbers = ownership.ranks_per_source()});
  }
  return layout;
}

}  // namespace onebit::optim
