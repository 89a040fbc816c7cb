#include "onebit/exchange/comm/overlapped_exchange.h"

#include <utility>

#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/error.h"
#include "onebit/math/device/profile.h"

namespace onebit::comm {

OverlappedExchange::OverlappedExchange(Communicator& communicator, const Buckets& buckets,
                                       Device device, const Buckets& announced,
                                       BucketStations stations)
    : ready_(announced) {
  ONEBIT_INVARIANT(announced.count() == buckets.count());
  if (communicator.world_size() > 1) {
    thread_ = std::make_unique<ExchangeThread>(communicator.duplicate(), device);
  }
  pipeline_ = std::make_unique<BucketPipeline>(thread_ ? thread_->communicator() : communicator,
                                               buckets, std::move(stations));
}

OverlappedExchange::~OverlappedExchange() {
  if (thread_) thread_->stop();
}

void OverlappedExchange::begin(const Context& computing) {
  computing_ = &computing;
  ready_.restart();
  overlaps_ = false;
}

ProfileTrack* OverlappedExchange::exchange_track() const {
  ProfileTrack* const computing = computing_->profile_track();
  return computing == nullptr ? nullptr : &computing->profile().track("exchange");
}

void OverlappedExchange::ready(Range range) {
  if (!thread_) return;
  overlaps_ = true;
  for (const int64_t bucket : ready_.ready(range)) {
    thread_->submit([this, bucket, made = computing_->milestone(), track = exchange_track()](
                        Context& context, Communicator&) {
      context.set_profile_track(track);
      context.wait_for(made);
      pipeline_->submit(context, bucket);
    });
  }
}

void OverlappedExchange::finish(Context& context) {
  const Stopwatch watch;
  if (overlaps_) {
    const PhaseSpan phase(context, "exchange wait");
    ready_.require_all();
    thread_->submit([this, track = exchange_track()](Context& own, Communicator&) {
      own.set_profile_track(track);
      pipeline_->finish(own);
      own.synchronize();
    });
    thread_->wait();
  } else {
    for (int64_t bucket = 0; bucket < buckets().count(); ++bucket) {
      pipeline_->submit(context, bucket);
    }
    pipeline_->finish(context);
  }
  const ExchangeSeconds after = pipeline_->seconds();
  step_seconds_ = {.fill = after.fill - seconds_before_.fill,
                   .compute = after.compute - seconds_before_.compute,
                   .wait = overlaps_ ? watch.seconds() : after.wait - seconds_before_.wait};
  seconds_before_ = after;
}

int64_t OverlappedExchange::wire_bytes_sent() const {
  return thread_ ? thread_->communicator().wire_bytes_sent() : 0;
}

}  // namespace onebit::comm
