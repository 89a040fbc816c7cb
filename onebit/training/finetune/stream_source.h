// Batch sources on top of the streams of a data floor.
#pragma once

#include <memory>
#include <utility>

#include "onebit/ground/base/error.h"
#include "onebit/training/training/batch_source.h"

namespace onebit::finetune {

// `Batch` is a training::HostBatch whose member `batch` is filled by `Stream`.
template <typename Stream, typename Batch>
class StreamSource : public training::BatchSource {
 public:
  explicit StreamSource(Stream stream) : stream_(std::move(stream)) {}

  std::unique_ptr<training::HostBatch> make_batch() const override {
    auto batch = std::make_unique<Batch>();
    batch->batch.reserve(stream_.bounds());
    return batch;
  }
  void build(uint64_t first_sample, int64_t micro_step, training::HostBatch& batch) override {
    auto* made = dynamic_cast<Batch*>(&batch);
    ONEBIT_INVARIANT(made != nullptr);
    stream_.build(first_sample, micro_step, made->batch);
  }
  batches::BatchBounds bounds() const override { return stream_.bounds(); }

 protected:
  Stream& stream() { return stream_; }
  const Stream& stream() const { return stream_; }

 private:
  Stream stream_;
};

// The same for items that are all in memory: every epoch has equally many, so that the sample
// counter is the whole position, and a checkpoint only records whether the items are the same.
template <typename Stream, typename Batch>
class ItemSource : public StreamSource<Stream, Batch> {
 public:
  ItemSource(Stream stream, Json identity)
      : StreamSource<Stream, Batch>(std::move(stream)), identity_(std::move(identity)) {}

  uint64_t samples_per_epoch() const override { return this->stream().samples_per_epoch(); }
  Json identity() const override { return identity_; }
  // The number of samples is the position.
  Json position(uint64_t /*samples*/) override { return Json::object(); }

 private:
  Json identity_;
};

}  // namespace onebit::finetune
