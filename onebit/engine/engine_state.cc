#include <algorithm>
#include <vector>

#include "onebit/base/json.h"
#include "onebit/comm/chunked.h"
#include "onebit/engine/engine.h"
#include "onebit/optim/value_rule.h"

namespace onebit::engine {

void Engine::broadcast_values() {
  // Ranks usually have initialised or read the same values; then only a hash is sent.
  if (communicator_.world_size() > 1 && !replicas_agree()) {
    std::vector<float> values(static_cast<size_t>(table_.size_elements()));
    const View staged = View::of(values.data(), {table_.size_elements()});
    copy(staged, table_.values());
    comm::broadcast_in_chunks(communicator_, std::as_writable_bytes(std::span(values)), 0);
    copy(table_.values(), staged);
  }
  optim::refresh_compute_copy(context_, table_);
  packed_.changed();
}

Json Engine::resolved_recipe() const {
  Json recipe = config_.recipe.resolved();
  if (!resolved_scheduler_->empty()) recipe["scheduler"] = *resolved_scheduler_;
  recipe["train_batch_size"] = batch_.train;
  recipe["train_micro_batch_size_per_gpu"] = batch_.micro;
  recipe["gradient_accumulation_steps"] = batch_.accumulation;
  return recipe;
}

bool Engine::replicas_agree() {
  const ConstView values = table_.values();
  const Tensor staged = values.device().is_cpu() ? Tensor() : to_cpu_f32(values);
  const auto* words = static_cast<const uint32_t*>(
      values.device().is_cpu() ? values.raw() : static_cast<const void*>(staged.data<float>()));
  uint64_t hash = 0xCBF29CE484222325ull;
  for (int64_t index = 0; index < values.elements(); ++index) {
    hash = (hash ^ words[index]) * 0x100000001B3ull;
  }
  int64_t least = static_cast<int64_t>(hash), most = least;
  communicator_.all_reduce(std::span(&least, 1), comm::Reduction::kMin);
  communicator_.all_reduce(std::span(&most, 1), comm::Reduction::kMax);
  return least == most;
}

void Engine::save(params::StateWriter& writer) const {
  writer.scalar("engine", Json{{"completed_steps", completed_steps_},
                               {"skipped_steps", skipped_steps_},
                               {"loss_scaler", scaler_.save()},
                               {"clipper", clipper_.save(sources())}});
  optimizer_->save(writer);
}

void Engine::load(const params::StateReader& reader) {
  const Json state = reader.scalar("engine");
  require(state.is_object(),
          "the checkpoint's state.json contains no counters of a run: it is damaged or was written "
          "by another program; resume from another checkpoint with --resume TAG");
  completed_steps_ = state.at("completed_steps").get<int64_t>();
  skipped_steps_ = state.at("skipped_steps").get<int64_t>();
  scaler_.load(state.at("loss_scaler"));
  clipper_.load(state.at("clipper"), sources());
  micro_step_ = 0;
  reported_waiting_ = reported_noise_ = false;
  optimizer_->load(context_, table_, reader);
  packed_.changed();
}

}  // namespace onebit::engine
