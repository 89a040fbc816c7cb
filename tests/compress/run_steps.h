// Several steps of a compressed all-reduce on one rank, for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "onebit/exchange/compress/compressed_all_reduce.h"
#include "tests/compress/test_values.h"
#include "tests/ops/mirror.h"

namespace onebit::compress::trials {

struct Plan {
  int64_t elements = 0;
  int64_t bucket_bytes = 3 * kBlockElements * 4;
  int steps = 3;
  int first_step = 0;
  int threads = 1;
  bool still = false;
  bool extras = false;
  float beta = 0;  // of the owners' momentum
  CompressionOptions options;
};

// A compressed all-reduce whose buckets are given one by one.
class Exchange : public CompressedAllReduce {
 public:
  Exchange(comm::Communicator& world, const comm::Buckets& buckets,
           const CompressionOptions& options)
      : CompressedAllReduce(world, buckets, options),
        pipeline_(world, buckets,
                  stations([this](Context&, const comm::BucketInFlight&) { return data_; })) {}

  void submit(Context& context, int64_t bucket, const CompressedBucket& data) {
    data_ = data;
    pipeline_.submit(context, bucket);
  }
  void finish(Context& context) { pipeline_.finish(context); }
  int64_t wire_bytes() const { return pipeline_.wire_bytes(); }

 private:
  CompressedBucket data_;
  comm::BucketPipeline pipeline_;
};

// The results of a rank.
struct Outcome {
  std::vector<std::vector<float>> averages;       // [steps][elements]
  std::vector<float> worker, server;              // residuals, `server` of what is owned
  std::vector<float> worker_sizes, server_sizes;  // their sizes after every step, added up
  std::vector<float> extras;                      // of the last step
  int64_t wire_bytes = 0;                         // per step, counted at the transport
  ResidualNorms norms;
};

inline std::vector<float> contents(const View& view) {
  const Tensor host = to_cpu_f32(view);
  const float* begin = host.data<float>();
  return {begin, begin + view.elements()};
}

inline void add_sizes(const View& view, std::vector<float>& sizes) {
  const std::vector<float> values = contents(view);
  sizes.resize(values.size());
  for (size_t i = 0; i < values.size(); ++i) sizes[i] += std::abs(values[i]);
}

// Decodes the coded parts of a bucket, in pieces that do not end where chunks do.
inline void decode_bucket(Context& context, CompressedAllReduce& exchange, int64_t bucket,
                          const View& still, const View& values) {
  const int64_t elements = values.elements(), blocks = blocks_in(elements);
  for (int64_t first = 0; first < blocks; first += 2) {
    const BlockRange now{first, std::min(first + 2, blocks)};
    const auto [begin, end] = elements_of(now, elements);
    exchange.decode(context, bucket, now, still, values.rows(begin, end));
  }
}

// What arrived last, on a CPU and without still entries.
inline std::vector<float> decoded(Context& context, CompressedAllReduce& exchange) {
  const comm::Buckets& buckets = exchange.buckets();
  std::vector<float> values(static_cast<size_t>(buckets.elements()));
  for (int64_t i = 0; i < buckets.count(); ++i) {
    const auto [begin, end] = buckets.range(i);
    decode_bucket(context, exchange, i, {}, View::of(values.data() + begin, {end - begin}));
  }
  return values;
}

// Runs one step, copying values and extras to the context's device and back: they become what
// arrived.
inline void exchange(Context& context, Exchange& exchange, std::vector<float>& values,
                     std::vector<uint8_t>& still, std::vector<float>& extras, float beta = 0) {
  const comm::Buckets& buckets = exchange.buckets();
  ops::Mirror mirror(context);
  const auto placed = [&](auto& all) {
    return all.empty() ? View() : mirror(View::of(all.data(), {static_cast<int64_t>(all.size())}));
  };
  const auto part = [](const View& all, int64_t begin, int64_t end) {
    return all.empty() ? View() : all.rows(begin, end);
  };
  const View all_values = placed(values), all_still = placed(still), all_extras = placed(extras);
  for (int64_t i = 0; i < buckets.count(); ++i) {
    const auto [begin, end] = buckets.range(i);
    exchange.submit(context, i,
                    {.values = part(all_values, begin, end),
                     .still = part(all_still, begin / 8, (end + 7) / 8),
                     .extras = part(all_extras, begin / kBlockElements, blocks_in(end)),
                     .momentum = momentum_step(beta)});
  }
  exchange.finish(context);
  for (int64_t i = 0; i < buckets.count(); ++i) {
    const auto [begin, end] = buckets.range(i);
    decode_bucket(context, exchange, i, part(all_still, begin / 8, (end + 7) / 8),
                  all_values.rows(begin, end));
  }
  if (!all_extras.empty()) exchange.decode_extras(context, all_extras);
  mirror.bring_back();
}

// Numbers that bf16 represents exactly, as well as their sums.
inline std::vector<float> extras_of(int rank, int64_t elements) {
  std::vector<float> extras;
  for (int64_t block = 0; block < blocks_in(elements); ++block) {
    extras.push_back(static_cast<float>(block + 10 * rank));
  }
  return extras;
}

inline void run_steps(comm::Communicator& world, const Plan& plan, Exchange& all_reduce,
                      Outcome& outcome) {
  const Device device = world.device();
  Context context = device.is_cpu() ? Context::cpu(plan.threads) : Context::cuda(device.index);
  std::vector<uint8_t> still = plan.still ? still_of(plan.elements) : std::vector<uint8_t>();
  for (int step = plan.first_step; step < plan.first_step + plan.steps; ++step) {
    std::vector<float> values = values_of(world.rank(), step, plan.elements);
    if (plan.extras) outcome.extras = extras_of(world.rank(), plan.elements);
    const int64_t before = world.wire_bytes_sent();
    exchange(context, all_reduce, values, still, outcome.extras, plan.beta);
    outcome.wire_bytes = world.wire_bytes_sent() - before;
    outcome.averages.push_back(std::move(values));
    add_sizes(all_reduce.worker_residual(), outcome.worker_sizes);
    add_sizes(all_reduce.server_residual(), outcome.server_sizes);
  }
  outcome.norms = all_reduce.norms();
  outcome.worker = contents(all_reduce.worker_residual());
  outcome.server = contents(all_reduce.server_residual());
}

inline Outcome run_steps(comm::Communicator& world, const Plan& plan) {
  Exchange all_reduce(world, comm::Buckets(plan.elements, plan.bucket_bytes), plan.options);
  Outcome outcome;
  run_steps(world, plan, all_reduce, outcome);
  return outcome;
}

}  // namespace onebit::compress::trials
