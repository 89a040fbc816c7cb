#include "onebit/exchange/comm/dense_exchange.h"

#include <gtest/gtest.h>

#include <cstring>

#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/exchange/transport/device_communicator.h"
#include "onebit/ground/base/philox.h"
#include "onebit/math/device/memory.h"
#include "onebit/math/tensor/tensor.h"
#include "tests/transport/mpi_environment.h"

namespace onebit::comm {
namespace {

std::vector<float> values_of(int rank, int64_t elements) {
  RandomSequence random(11, static_cast<uint64_t>(rank), 0);
  std::vector<float> values;
  for (int64_t i = 0; i < elements; ++i) {
    values.push_back(static_cast<float>(random.uniform() - 0.5));
  }
  return values;
}

// Averages `values` f32 [elements of the pipeline's buckets] over ranks.
struct FlatAverage {
  View values;
  BucketPipeline pipeline;

  FlatAverage(Communicator& world, View flat, DType wire)
      : values(flat),
        pipeline(world, Buckets(flat.elements(), 3 * kBlockElements * 4),
                 dense_stations(wire, world.world_size(),
                                [this](Context&, const BucketInFlight& in_flight) {
                                  return values.rows(in_flight.range.begin, in_flight.range.end);
                                })) {}

  void run(Context& context) {
    for (int64_t i = 0; i < pipeline.buckets().count(); ++i) pipeline.submit(context, i);
    pipeline.finish(context);
  }
};

std::vector<float> average_on(Communicator& world, int64_t elements, DType wire) {
  Context context = Context::cpu(1);
  std::vector<float> values = values_of(world.rank(), elements);
  FlatAverage average(world, View::of(values.data(), {elements}), wire);
  const int64_t before = world.wire_bytes_sent();
  average.run(context);
  EXPECT_EQ(world.wire_bytes_sent() - before, average.pipeline.wire_bytes());
  return values;
}

float rounded(float value, DType wire) {
  if (wire == DType::kBF16) return static_cast<float>(bf16(value));
  if (wire == DType::kF16) return static_cast<float>(f16(value));
  return value;
}

// The contract, element by element: rounded contributions added in rank order, the average rounded.
std::vector<float> expected_average(int world_size, int64_t elements, DType wire) {
  if (world_size == 1) return values_of(0, elements);
  std::vector<float> sum(static_cast<size_t>(elements));
  for (int rank = 0; rank < world_size; ++rank) {
    const std::vector<float> values = values_of(rank, elements);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += rounded(values[i], wire);
  }
  for (float& value : sum) value = rounded(value * (1.0f / static_cast<float>(world_size)), wire);
  return sum;
}

class DenseRanks : public ::testing::TestWithParam<int> {};

TEST_P(DenseRanks, AverageInRankOrderOnEveryRank) {
  for (const DType wire : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const int64_t elements : {int64_t{1}, int64_t{2048}, int64_t{5000}, int64_t{50001}}) {
      const std::vector<float> expected = expected_average(GetParam(), elements, wire);
      run_thread_world(GetParam(), [&](Communicator& world) {
        EXPECT_EQ(average_on(world, elements, wire), expected)
            << name_of(wire) << ", " << elements << " elements, rank " << world.rank();
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, DenseRanks, ::testing::Range(1, 9));

TEST(MpiDenseExchange, GivesTheBitsOfThreadRanks) {
  ONEBIT_SKIP_WITHOUT_MPIRUN();
  Communicator& world = *mpi_tests::mpi_world();
  for (const DType wire : {DType::kF32, DType::kBF16}) {
    EXPECT_EQ(average_on(world, 50001, wire), expected_average(world.world_size(), 50001, wire));
  }
}

// Two ranks that share a device, through host memory.
TEST(CudaDenseExchange, GivesTheBitsOfTheCpu) {
  if (memory::cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device here";
  constexpr Device kFirst{DeviceType::kCuda, 0};
  for (const DType wire : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (const int64_t elements : {int64_t{1}, int64_t{5000}}) {
      const std::vector<float> expected = expected_average(2, elements, wire);
      run_thread_world(2, [&](Communicator& world) {
        Context context = Context::cuda(0);
        const auto staged = transport::make_device_communicator(
            world.duplicate(), kFirst, transport::DeviceTransport::kStaged);
        std::vector<float> values = values_of(world.rank(), elements);
        Tensor there(kFirst, DType::kF32, {elements});
        copy(there.view(), View::of(values.data(), {elements}));
        FlatAverage(*staged, there.view(), wire).run(context);
        context.synchronize();
        copy(View::of(values.data(), {elements}), there.view());
        EXPECT_EQ(values, expected) << name_of(wire) << ", " << elements << " elements";
      });
    }
  }
}

TEST(DenseExchange, SendsWhatARingSends) {
  constexpr int64_t kElements = 1 << 20;
  run_thread_world(4, [](Communicator& world) {
    const Buckets buckets(kElements, 1 << 18);
    const auto bytes = [&](DType wire) {
      return BucketPipeline(world, buckets, dense_stations(wire, 4, {})).wire_bytes();
    };
    EXPECT_EQ(bytes(DType::kBF16), ring_bytes_16bit(kElements, 4));
    EXPECT_EQ(bytes(DType::kF32), 2 * ring_bytes_16bit(kElements, 4));
  });
}

TEST(DenseExchange, RefusesOtherTypes) {
  EXPECT_THROW(dense_stations(DType::kI32, 2, {}), Error);
}

}  // namespace
}  // namespace onebit::comm
