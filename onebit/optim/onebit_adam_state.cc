#include "onebit/optim/onebit_adam.h"
#include "onebit/optim/state_name.h"

namespace onebit::optim {
namespace {

constexpr const char* kName = "onebit_adam";

std::string coordinates_name(Coordinates coordinates) {
  return coordinates == Coordinates::kPreconditioned ? "preconditioned" : "momentum";
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
  moments_.save(writer);
  freeze_rule_.save(writer);
  if (has_level()) level_.save(writer, compressed);
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
  require(
      !has_level() || !reader.scalar("level_observations").is_null(),
      "optimizer.params.variance is \"live_level\", but the checkpoint was made with \"frozen\" "
      "and holds no level; set \"variance\": \"frozen\"");
  updates_ = reader.scalar("updates").get<int64_t>();
  moments_.load(reader);
  freeze_rule_.load(reader);
  if (has_level()) {
    level_.load(reader, compressed, communicator_.rank(), communicator_.world_size());
  }
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
  for (const Tensor* tensor : {&energy_, &square_, &flags_, &factor_}) {
    bytes += tensor->view().size_bytes();
  }
  return exchange_ ? bytes + exchange_->size_bytes() : bytes;
}

int64_t OneBitAdam::wire_bytes_sent() const {
  return exchange_ ? exchange_->wire_bytes_sent() : 0;
}

}  // namespace onebit::optim
