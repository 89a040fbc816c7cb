#include "onebit/optim/onebit_adam.h"
#include "onebit/optim/state_name.h"

namespace onebit::optim {
namespace {

constexpr const char* kName = "onebit_adam";

std::string coordinates_name(Coordinates coordinates) {
  return coordinates == Coordinates::kPreconditioned ? "preconditioned" : "momentum";
}

std::string variance_name(Variance variance) {
  switch (variance) {
    case Variance::kLocal:
      return "local";
    case Variance::kLiveLevel:
      return "live_level";
    case Variance::kFrozen:
      break;
  }
  return "frozen";
}

}  // namespace

void OneBitAdam::save(params::StateWriter& writer) const {
  ONEBIT_INVARIANT(!begun_);
  const bool compressed = phase_ == Phase::kCompressed;
  save_state_name(writer, kName);
  writer.scalar("phase", std::string(name_of(phase_)));
  writer.scalar("updates", updates_);
  writer.scalar("coordinates", coordinates_name(config_.coordinates));
  writer.scalar("exp_avg_mask", Json(config_.moving_rows));
  writer.scalar("variance_kind", variance_name(config_.variance));
  if (compressed && is_local()) {
    moments_.save_own_inverse(writer);
  } else {
    moments_.save(writer);
  }
  freeze_rule_.save(writer);
  if (has_level()) level_.save(writer, compressed);
  if (is_local()) noise_.save(writer, compressed);
  if (compressed) exchange_->save(writer);
}

void OneBitAdam::load(Context&, params::Table& table, const params::StateReader& reader) {
  check_state_name(reader, kName);
  const bool compressed = reader.scalar("phase") == std::string(name_of(Phase::kCompressed));
  const std::string saved = reader.scalar("coordinates").get<std::string>();
  require(!compressed || saved == coordinates_name(config_.coordinates),
          "optimizer.params.coordinates is \"{}\", but the checkpoint was frozen with \"{}\": what "
          "travels cannot change after the freeze",
          coordinates_name(config_.coordinates), saved);
  require(
      !compressed || reader.scalar("exp_avg_mask") == Json(config_.moving_rows),
      "optimizer.params.exp_avg_mask is {}, but the checkpoint was frozen with {}: which rows are "
      "held cannot change after the freeze",
      Json(config_.moving_rows).dump(), reader.scalar("exp_avg_mask").dump());
  // Without the key the checkpoint is older than local variances.
  const std::string older = reader.scalar("level_observations").is_null() ? "frozen" : "live_level";
  const Json named = reader.scalar("variance_kind");
  const std::string kind = named.is_null() ? older : named.get<std::string>();
  require(
      kind == variance_name(config_.variance),
      "optimizer.params.variance is \"{}\", but the checkpoint was made with \"{}\": use that, or "
      "start a new run with --initialize-from",
      variance_name(config_.variance), kind);
  updates_ = reader.scalar("updates").get<int64_t>();
  const int rank = communicator_.rank(), world_size = communicator_.world_size();
  if (compressed && is_local()) {
    moments_.load_own_inverse(reader, rank, world_size);
  } else {
    moments_.load(reader);
  }
  freeze_rule_.load(reader);
  if (has_level()) level_.load(reader, compressed, rank, world_size);
  if (is_local()) noise_.load(reader, compressed, rank, world_size);
  observed_ = begun_ = false;
  phase_ = compressed ? Phase::kCompressed : Phase::kWarmup;
  exchange_.reset();
  if (!compressed) return;
  still_.restore(inverse());
  make_exchange(table);
  exchange_->load(reader);
}

int64_t OneBitAdam::state_bytes() const {
  int64_t bytes = moments_.size_bytes() + still_.bitmap().size_bytes();
  for (const Tensor* tensor : {&energy_, &square_, &flags_, &factor_, &ratio_}) {
    bytes += tensor->view().size_bytes();
  }
  return exchange_ ? bytes + exchange_->size_bytes() : bytes;
}

int64_t OneBitAdam::wire_bytes_sent() const {
  return exchange_ ? exchange_->wire_bytes_sent() : 0;
}

}  // namespace onebit::optim
