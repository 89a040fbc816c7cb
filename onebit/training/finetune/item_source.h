// The batches of a training file whose items are all in memory.
#pragma once

#include <utility>

#include "onebit/ground/base/json.h"
#include "onebit/training/training/task.h"

namespace onebit::finetune {

// `Stream` has the members build(), bounds() and samples_per_epoch() of a BatchSource. Every epoch
// has equally many items, so that the sample counter is the whole position, and a checkpoint only
// records whether the items are the same.
template <typename Stream>
class ItemSource : public training::BatchSource {
 public:
  ItemSource(Stream stream, Json identity)
      : stream_(std::move(stream)), identity_(std::move(identity)) {}

  void build(uint64_t first_sample, int64_t micro_step, batches::Batch& batch) override {
    stream_.build(first_sample, micro_step, batch);
  }
  batches::BatchBounds bounds() const override { return stream_.bounds(); }
  uint64_t samples_per_epoch() const override { return stream_.samples_per_epoch(); }
  Json identity() const override { return identity_; }
  // The number of samples is the position.
  Json position(uint64_t /*samples*/) override { return Json::object(); }

 private:
  Stream stream_;
  Json identity_;
};

}  // namespace onebit::finetune
