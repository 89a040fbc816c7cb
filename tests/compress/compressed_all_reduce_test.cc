#include "onebit/exchange/compress/compressed_all_reduce.h"

#include <gtest/gtest.h>

#include "onebit/exchange/comm/overlapped_exchange.h"
#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/math/device/memory.h"
#include "tests/compress/owned_parts.h"
#include "tests/compress/reference_codec.h"
#include "tests/compress/run_steps.h"
#include "tests/transport/mpi_environment.h"

namespace onebit::compress {
namespace {

using comm::Communicator;
using trials::contents;
using trials::Exchange;
using trials::Outcome;
using trials::Plan;
using trials::run_steps;
using trials::still_of;
using trials::values_of;

// The expected results and residuals of every rank.
struct Expected {
  std::vector<std::vector<float>> averages;
  reference::AllReduce state;

  Expected(int ranks, const Plan& plan) : state(ranks, plan.elements) {
    const std::vector<uint8_t> still =
        plan.still ? still_of(plan.elements) : std::vector<uint8_t>();
    for (int step = 0; step < plan.steps; ++step) {
      std::vector<std::vector<float>> values;
      for (int rank = 0; rank < ranks; ++rank) {
        values.push_back(values_of(rank, step, plan.elements));
      }
      averages.push_back(state.run(values, still, plan.beta));
    }
  }
};

void expect_equal(Communicator& world, const Plan& plan, const Outcome& outcome,
                  const Expected& expected) {
  EXPECT_EQ(outcome.averages, expected.averages) << "rank " << world.rank();
  EXPECT_EQ(outcome.worker, expected.state.worker[static_cast<size_t>(world.rank())]);
  const Ownership cut{comm::Buckets(plan.elements, plan.bucket_bytes), world.world_size()};
  EXPECT_EQ(outcome.server,
            trials::owned_parts(cut, expected.state.server)[static_cast<size_t>(world.rank())]);
}

class CompressedRanks : public ::testing::TestWithParam<int> {};

TEST_P(CompressedRanks, EqualTheReferenceBitForBit) {
  // The sizes go from less than a block per rank to several buckets with a partial end.
  for (const int64_t elements : {int64_t{3}, int64_t{2048}, int64_t{5000}, int64_t{40001}}) {
    for (const bool still : {false, true}) {
      const Plan plan{.elements = elements, .still = still, .options = {}};
      const Expected expected(GetParam(), plan);
      comm::run_thread_world(GetParam(), [&](Communicator& world) {
        expect_equal(world, plan, run_steps(world, plan), expected);
      });
    }
  }
}

TEST_P(CompressedRanks, OwnersSendTheirMomentum) {
  for (const bool still : {false, true}) {
    const Plan plan{.elements = 40001,
                    .steps = 4,
                    .still = still,
                    .beta = 0.75f,
                    .options = {.owner_momentum = true}};
    const Expected expected(GetParam(), plan);
    comm::run_thread_world(GetParam(), [&](Communicator& world) {
      expect_equal(world, plan, run_steps(world, plan), expected);
    });
  }
}

// Coded values need a thirtieth of the memory of decoded ones, and the caller owns the residual.
TEST_P(CompressedRanks, KeepWhatArrivedInFewBytes) {
  const comm::Buckets buckets(70001, 3 * kBlockElements * 4);
  comm::run_thread_world(GetParam(), [&](Communicator& world) {
    const int64_t coded = CompressedAllReduce::coded_bytes(buckets, world.world_size());
    EXPECT_GE(coded, 70001 / 8 + 35 * kHeaderBytes);
    EXPECT_LE(coded, 70001 / 7);
    Exchange all_reduce(world, buckets, {.given_residual = true});
    EXPECT_TRUE(all_reduce.worker_residual().empty());
    all_reduce.hold_worker_residual(Tensor::zeros(Device{}, DType::kF32, {70001}));
    Context context = Context::cpu(1);
    std::vector<float> values = values_of(world.rank(), 0, 70001), extras;
    std::vector<uint8_t> still;
    trials::exchange(context, all_reduce, values, still, extras);
    EXPECT_NE(contents(all_reduce.worker_residual()), std::vector<float>(70001));
    EXPECT_EQ(all_reduce.release_worker_residual().view().elements(), 70001);
    EXPECT_TRUE(all_reduce.worker_residual().empty());
  });
}

TEST_P(CompressedRanks, AverageExtras) {
  const Plan plan{.elements = 30000, .steps = 1, .extras = true, .options = {}};
  comm::run_thread_world(GetParam(), [&](Communicator& world) {
    const Outcome outcome = run_steps(world, plan);
    const int ranks = world.world_size();
    for (size_t block = 0; block < outcome.extras.size(); ++block) {
      float sum = 0;
      for (int rank = 0; rank < ranks; ++rank) sum += static_cast<float>(block) + 10.0f * rank;
      const bf16 average(sum * (1.0f / static_cast<float>(ranks)));
      EXPECT_EQ(outcome.extras[block], static_cast<float>(average));
    }
  });
}

TEST_P(CompressedRanks, SendWhatTheySay) {
  const Plan plan{.elements = 70001, .steps = 2, .options = {}};
  comm::run_thread_world(GetParam(), [&](Communicator& world) {
    Exchange all_reduce(world, comm::Buckets(plan.elements, plan.bucket_bytes), plan.options);
    Outcome outcome;
    run_steps(world, plan, all_reduce, outcome);
    EXPECT_EQ(outcome.wire_bytes, all_reduce.wire_bytes());
  });
}

TEST_P(CompressedRanks, NeedTheMemoryOfABucketUntilItIsPacked) {
  for (const int64_t elements : {int64_t{3}, int64_t{10000}, int64_t{70001}}) {
    const Plan plan{.elements = elements, .steps = 2, .options = {}};
    comm::run_thread_world(GetParam(), [&](Communicator& world) {
      const Outcome expected = run_steps(world, plan);
      const comm::Buckets buckets(elements, plan.bucket_bytes);
      std::vector<float> values, of_bucket(static_cast<size_t>(buckets.max_elements()));
      const auto fill = [&](Context&, const comm::BucketInFlight& in_flight) {
        const Range range = in_flight.range;
        std::copy_n(values.begin() + range.begin, range.elements(), of_bucket.begin());
        return CompressedBucket{.values = View::of(of_bucket.data(), {range.elements()}),
                                .still = {},
                                .extras = {},
                                .momentum = {}};
      };
      CompressedAllReduce all_reduce(world, buckets, plan.options);
      comm::BucketPipeline pipeline(world, buckets, all_reduce.stations(fill));
      Context context = Context::cpu(1);
      for (int step = 0; step < plan.steps; ++step) {
        values = values_of(world.rank(), step, elements);
        for (int64_t bucket = 0; bucket < buckets.count(); ++bucket) {
          pipeline.submit(context, bucket);
        }
        pipeline.finish(context);
        EXPECT_EQ(trials::decoded(context, all_reduce),
                  expected.averages[static_cast<size_t>(step)]);
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, CompressedRanks, ::testing::Range(1, 9));

TEST(MpiCompressedAllReduce, GivesTheBitsOfThreadRanks) {
  ONEBIT_SKIP_WITHOUT_MPIRUN();
  Communicator& world = *onebit::mpi_tests::mpi_world();
  const Plan plan{.elements = 70001, .steps = 3, .still = true, .options = {}};
  const Outcome processes = run_steps(world, plan);
  expect_equal(world, plan, processes, Expected(world.world_size(), plan));
  comm::run_thread_world(world.world_size(), [&](Communicator& threads) {
    const Outcome outcome = run_steps(threads, plan);
    if (threads.rank() != world.rank()) return;
    EXPECT_EQ(outcome.averages, processes.averages);
    EXPECT_EQ(outcome.worker, processes.worker);
    EXPECT_EQ(outcome.server, processes.server);
    EXPECT_EQ(outcome.wire_bytes, processes.wire_bytes);
  });
}

TEST(CompressedAllReduce, DoesNotDependOnBucketsOrThreads) {
  const Plan plan{.elements = 70001, .steps = 2, .options = {}};
  comm::run_thread_world(2, [&](Communicator& world) {
    Plan other = plan;
    other.bucket_bytes = 33 * kBlockElements * 4;  // chunks large enough for two threads
    other.threads = 2;
    const Outcome one = run_steps(world, plan), two = run_steps(world, other);
    EXPECT_EQ(one.averages, two.averages);
    EXPECT_EQ(one.worker, two.worker);
  });
}

TEST(CompressedAllReduce, ResumesExactly) {
  const Plan whole{.elements = 30000, .steps = 4, .options = {}};
  Plan first = whole, second = whole;
  first.steps = second.steps = 2;
  second.first_step = 2;
  comm::run_thread_world(3, [&](Communicator& world) {
    const Outcome unbroken = run_steps(world, whole);
    const Outcome saved = run_steps(world, first);
    Exchange resumed(world, comm::Buckets(whole.elements, whole.bucket_bytes), whole.options);
    const std::vector<NamedView> state = resumed.state();
    ASSERT_EQ(state.size(), 2u);
    EXPECT_EQ(state[0].name, "worker_residual");
    EXPECT_EQ(state[1].name, "server_residual");
    std::ranges::copy(saved.worker, state[0].view.data<float>());
    std::ranges::copy(saved.server, state[1].view.data<float>());
    Outcome outcome;
    run_steps(world, second, resumed, outcome);
    EXPECT_EQ(outcome.averages[1], unbroken.averages[3]);
    EXPECT_EQ(outcome.worker, unbroken.worker);
    EXPECT_EQ(outcome.server, unbroken.server);

    resumed.clear_residuals();
    EXPECT_EQ(contents(resumed.worker_residual()), std::vector<float>(30000));
  });
}

// Elements without further gradients reach zero instead of slow denormal numbers.
TEST(CompressedAllReduce, WithoutValuesNothingIsLeft) {
  const Plan plan{.elements = 7000, .options = {.owner_momentum = true}};
  comm::run_thread_world(2, [&](Communicator& world) {
    Context context = Context::cpu(1);
    Exchange all_reduce(world, comm::Buckets(plan.elements, plan.bucket_bytes), plan.options);
    std::vector<uint8_t> still;
    std::vector<float> extras;
    const auto is_left = [&] {
      bool any = false;
      for (const View& part : {all_reduce.worker_residual(), all_reduce.server_residual(),
                               all_reduce.owner_momentum()}) {
        for (const float one : contents(part)) {
          EXPECT_TRUE(one == 0 || std::isnormal(one)) << one;
          any = any || one != 0;
        }
      }
      return any;
    };
    for (int step = 0; step < 1500; ++step) {
      std::vector<float> values(static_cast<size_t>(plan.elements));
      if (step < 5) values = values_of(world.rank(), step, plan.elements);
      trials::exchange(context, all_reduce, values, still, extras, 0.9f);
      if (step == 5) {
        EXPECT_TRUE(is_left());
      }
    }
    EXPECT_FALSE(is_left());
  });
}

TEST(CompressedAllReduce, ReportsNorms) {
  const auto norm = [](const std::vector<float>& values) {
    double squares = 0;
    for (const float value : values) squares += static_cast<double>(value) * value;
    return std::sqrt(squares);
  };
  const Plan plan{.elements = 20000, .steps = 2, .options = {}};
  comm::run_thread_world(2, [&](Communicator& world) {
    const Outcome outcome = run_steps(world, plan);
    // Each square is summed in f32 within a block: 72 roundings, halved by the root.
    const double tolerance = 36 * 0x1p-24;
    const auto expect_near = [&](double actual, double expected) {
      EXPECT_NEAR(actual, expected, tolerance * expected);
    };
    expect_near(outcome.norms.values, norm(values_of(world.rank(), 1, plan.elements)));
    expect_near(outcome.norms.worker_residual, norm(outcome.worker));
    expect_near(outcome.norms.server_residual, norm(outcome.server));
    EXPECT_GT(outcome.norms.average, 0);
  });
}

// The exchange thread sends buckets while the rank continues, as in a backward pass.
TEST(CompressedAllReduce, RunsOnAnExchangeThread) {
  const Plan plan{.elements = 70001, .steps = 1, .options = {}};
  comm::run_thread_world(4, [&](Communicator& world) {
    const Outcome expected = run_steps(world, plan);
    comm::ExchangeThread thread(world.duplicate(), Device{});
    Exchange all_reduce(thread.communicator(), comm::Buckets(plan.elements, plan.bucket_bytes),
                        plan.options);
    std::vector<float> values = values_of(world.rank(), 0, plan.elements);
    for (int64_t i = 0; i < all_reduce.buckets().count(); ++i) {
      const Range range = all_reduce.buckets().range(i);
      thread.submit([&, i, range](Context& context, Communicator&) {
        const View part = View::of(values.data() + range.begin, {range.elements()});
        all_reduce.submit(context, i, {.values = part, .still = {}, .extras = {}, .momentum = {}});
      });
    }
    thread.submit([&](Context& context, Communicator&) { all_reduce.finish(context); });
    thread.wait();
    Context context = Context::cpu(1);
    EXPECT_EQ(trials::decoded(context, all_reduce), expected.averages[0]);
    thread.stop();
  });
}

TEST(CompressedAllReduce, StepsAllocateNoBuffers) {
  const std::unique_ptr<Communicator> alone = comm::make_single_rank();
  Context context = Context::cpu(1);
  Exchange all_reduce(*alone, comm::Buckets(50000, 3 * kBlockElements * 4), {});
  std::vector<float> values = values_of(0, 0, 50000), extras;
  std::vector<uint8_t> still;
  const int64_t before = memory::allocation_count();
  trials::exchange(context, all_reduce, values, still, extras);
  trials::exchange(context, all_reduce, values, still, extras);
  EXPECT_EQ(memory::allocation_count(), before);
}

}  // namespace
}  // namespace onebit::compress
