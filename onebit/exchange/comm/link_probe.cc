#include "onebit/exchange/comm/link_probe.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "onebit/exchange/comm/bucket_pipeline.h"
#include "onebit/ground/base/clock.h"

namespace onebit::comm {
namespace {

// Exchanges buckets of arbitrary bytes: an element is a byte, and no data is packed or reduced.
class ProbeExchange {
 public:
  ProbeExchange(Communicator& communicator, int64_t bucket_bytes)
      : pipeline_(communicator, {kBucketsInFlight * bucket_bytes, bucket_bytes * 4},
                  {.chunk_bytes = [](Range chunk) { return chunk.elements(); }}) {}

  // Bytes of one bucket sent by each rank, or the mean if blocks do not divide evenly.
  double sent_bytes() const {
    const double world = pipeline_.communicator().world_size();
    return 2 * static_cast<double>(pipeline_.buckets().max_elements()) * (world - 1) / world;
  }

  // Collective.
  Stream stream(Context& context, int64_t count) {
    pipeline_.communicator().barrier();
    const Stopwatch stopwatch;
    const double before = thread_processor_seconds();
    for (int64_t i = 0; i < count; ++i) pipeline_.submit(context, i % pipeline_.buckets().count());
    pipeline_.finish(context);
    std::array<double, 2> seconds{stopwatch.seconds(), thread_processor_seconds() - before};
    pipeline_.communicator().all_reduce(std::span<double>(seconds), Reduction::kMax);
    return {.buckets = static_cast<double>(count),
            .seconds = seconds[0],
            .processor_seconds = seconds[1]};
  }

 private:
  BucketPipeline pipeline_;
};

// Buckets are cut at blocks, and every rank must own a part of each.
int64_t whole_blocks(int64_t bytes, int world_size) {
  const int64_t least = kBlockElements * world_size;
  return std::max(least, bytes / kBlockElements * kBlockElements);
}

struct Trial {
  int64_t bucket_bytes = 0;  // the largest size that does not take too long
  double spent_seconds = 0;
};

// Grows the bucket, starting with a size that even a slow link transfers quickly.
Trial find_size(Context& context, Communicator& communicator, int64_t wanted_bytes,
                const ProbeLimits& limits) {
  constexpr int64_t kFirstBytes = int64_t{1} << 16, kGrowth = 4;
  const int world = communicator.world_size();
  Trial trial{.bucket_bytes = whole_blocks(std::min(kFirstBytes, wanted_bytes), world)};
  while (trial.bucket_bytes < wanted_bytes) {
    ProbeExchange exchange(communicator, trial.bucket_bytes);
    const double seconds = exchange.stream(context, 1).seconds;
    trial.spent_seconds += seconds;
    // Three streams follow, seven buckets in total.
    if (7 * kGrowth * seconds > limits.at_most_seconds) break;
    trial.bucket_bytes = std::min(kGrowth * trial.bucket_bytes, wanted_bytes);
  }
  return trial;
}

}  // namespace

double seconds_per_bucket(std::span<const Stream> streams) {
  constexpr size_t kLast = 3;
  if (streams.size() > kLast) streams = streams.last(kLast);
  const Stream& longest = streams.back();
  const double plain = longest.seconds / longest.buckets;
  double buckets = 0, seconds = 0, product = 0, square = 0;
  for (const Stream& stream : streams) {
    buckets += stream.buckets / static_cast<double>(streams.size());
    seconds += stream.seconds / static_cast<double>(streams.size());
  }
  for (const Stream& stream : streams) {
    product += (stream.buckets - buckets) * (stream.seconds - seconds);
    square += (stream.buckets - buckets) * (stream.buckets - buckets);
  }
  // There is only one stream, or a disturbance as large as the measured times.
  if (square <= 0 || product <= 0) return plain;
  return product / square;
}

StreamSpeed probe_stream(Context& context, Communicator& communicator, int64_t bucket_bytes,
                         const ProbeLimits& limits) {
  const int world = communicator.world_size();
  StreamSpeed speed{.bytes_per_second = std::numeric_limits<double>::infinity()};
  if (world == 1) return speed;
  const int64_t wanted_bytes = whole_blocks(bucket_bytes, world);
  const Trial trial = find_size(context, communicator, wanted_bytes, limits);
  ProbeExchange exchange(communicator, trial.bucket_bytes);
  // The first stream touches memory for the first time and consumes the burst of a traffic shaper.
  double spent = trial.spent_seconds + exchange.stream(context, 1).seconds;
  std::vector<Stream> streams;
  constexpr int64_t kMaxBuckets = int64_t{1} << 20;
  for (int64_t count = 1; count <= kMaxBuckets; count *= 2) {
    streams.push_back(exchange.stream(context, count));
    spent += streams.back().seconds;
    const double limit = streams.size() < 3 ? limits.at_most_seconds : limits.seconds;
    if (spent + 2 * streams.back().seconds > limit) break;
  }
  const double seconds = seconds_per_bucket(streams);
  const double scale = static_cast<double>(bucket_bytes) / static_cast<double>(trial.bucket_bytes);
  speed.seconds_per_bucket = scale * seconds;
  speed.processor_seconds_per_bucket =
      scale * streams.back().processor_seconds / streams.back().buckets;
  speed.bytes_per_second = exchange.sent_bytes() / seconds;
  speed.sent_bytes = static_cast<int64_t>(exchange.sent_bytes() * streams.back().buckets);
  speed.seconds = streams.back().seconds;
  return speed;
}

double probe_latency(Communicator& communicator) {
  constexpr int kTimes = 16;
  if (communicator.world_size() == 1) return 0;
  for (int i = 0; i < 4; ++i) communicator.barrier();  // opens the connections
  const Stopwatch stopwatch;
  for (int i = 0; i < kTimes; ++i) communicator.barrier();
  std::array<double, 1> seconds{stopwatch.seconds()};
  communicator.all_reduce(std::span<double>(seconds), Reduction::kMax);
  return seconds[0] / kTimes;
}

}  // namespace onebit::comm
