#include "onebit/exchange/comm/overlapped_exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "onebit/exchange/comm/dense_exchange.h"
#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/exchange/transport/device_communicator.h"
#include "onebit/math/device/buffer.h"
#include "onebit/math/device/memory.h"
#include "onebit/math/device/profile.h"
#include "onebit/math/tensor/tensor.h"

namespace onebit::comm {
namespace {

constexpr int64_t kElements = 5 * kBlockElements + 100;

// One rank that averages a buffer, in buckets of two blocks.
class Rank {
 public:
  explicit Rank(Communicator& world)
      : context_(Context::cpu(1)),
        rank_(world.rank()),
        values_(kElements),
        overlapped_(world, Buckets(kElements, 2 * kBlockElements * 4), Device{},
                    dense_stations(DType::kF32, world.world_size(),
                                   [this](Context&, const BucketInFlight& in_flight) {
                                     return fill(in_flight);
                                   })) {}

  void begin(int step) {
    for (size_t i = 0; i < values_.size(); ++i) {
      values_[i] =
          static_cast<float>(rank_ + 1) * static_cast<float>(i % 13) + static_cast<float>(step);
    }
    sent_.clear();
    overlapped_.begin(context_);
  }
  void ready(int64_t begin, int64_t end) { overlapped_.ready({begin, end}); }
  void finish() { overlapped_.finish(context_); }

  Context& context() { return context_; }
  const std::vector<float>& values() const { return values_; }
  // Valid after finish().
  const std::vector<int64_t>& sent() const { return sent_; }
  // Waits until `buckets` have left in this step. Returns false after so long that they never will.
  bool sends(size_t buckets) {
    std::unique_lock lock(mutex_);
    return sends_.wait_for(lock, std::chrono::seconds(20), [&] { return sent_.size() >= buckets; });
  }
  OverlappedExchange& overlapped() { return overlapped_; }

 private:
  View fill(const BucketInFlight& in_flight) {
    {
      const std::lock_guard lock(mutex_);
      sent_.push_back(in_flight.bucket);
    }
    sends_.notify_all();
    return View::of(values_.data() + in_flight.range.begin, {in_flight.range.elements()});
  }

  Context context_;
  int rank_;
  std::vector<float> values_;
  std::mutex mutex_;
  std::condition_variable sends_;
  std::vector<int64_t> sent_;
  OverlappedExchange overlapped_;
};

// Announces all gradients from the end to the beginning, in ranges that are no buckets.
void announce_all(Rank& rank) {
  for (int64_t end = kElements; end > 0; end -= 1500) {
    rank.ready(std::max<int64_t>(0, end - 1500), end);
  }
}

TEST(OverlappedExchange, ReceivesTheSameWhetherBucketsLeaveEarlyOrLate) {
  for (const int world_size : {1, 2, 3}) {
    run_thread_world(world_size, [&](Communicator& world) {
      Rank rank(world);
      for (int step = 0; step < 4; ++step) {
        rank.begin(step);
        if (step % 2 == 0) announce_all(rank);
        rank.finish();
        EXPECT_EQ(rank.sent(), (std::vector<int64_t>{0, 1, 2}));
        for (size_t i = 0; i < rank.values().size(); ++i) {
          const float mean = static_cast<float>(world_size + 1) / 2;
          // Small whole numbers and halves: exact but for the share of three ranks.
          ASSERT_NEAR(rank.values()[i],
                      mean * static_cast<float>(i % 13) + static_cast<float>(step), 1e-5)
              << i << " in step " << step;
        }
      }
      EXPECT_EQ(rank.overlapped().wire_bytes_sent() > 0, world_size > 1);
    });
  }
}

// The next ranges are announced only after a bucket was sent: an exchange that keeps buckets until
// finish() would never finish.
TEST(OverlappedExchange, ABucketLeavesBeforeTheNextRangeIsReady) {
  run_thread_world(3, [](Communicator& world) {
    Rank rank(world);
    for (int step = 0; step < 2; ++step) {
      rank.begin(step);
      rank.ready(4 * kBlockElements, kElements);
      ASSERT_TRUE(rank.sends(1)) << "step " << step;
      rank.ready(3 * kBlockElements, 4 * kBlockElements);  // half of a bucket
      rank.ready(2 * kBlockElements, 3 * kBlockElements);
      ASSERT_TRUE(rank.sends(2)) << "step " << step;
      rank.ready(0, 2 * kBlockElements);
      rank.finish();
      EXPECT_EQ(rank.sent(), (std::vector<int64_t>{0, 1, 2}));
    }
  });
}

// The device has not computed the gradients yet when they are announced: work on the exchange's
// stream waits for the stream that computes them, and the step waits for the exchange.
TEST(CudaOverlappedExchange, ABucketLeavesWhenItsGradientsAreThere) {
  if (memory::cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device here";
  constexpr Device kFirst{DeviceType::kCuda, 0};
  run_thread_world(2, [&](Communicator& world) {
    Context context = Context::cuda(0);
    const auto staged = transport::make_device_communicator(world.duplicate(), kFirst,
                                                            transport::DeviceTransport::kStaged);
    Tensor gradients(kFirst, DType::kF32, {kElements});
    Staging made(kFirst, kElements * 4), averaged(kFirst, kElements * 4);
    const auto fill = [&](Context&, const BucketInFlight& in_flight) {
      return gradients.view().rows(in_flight.range.begin, in_flight.range.end);
    };
    OverlappedExchange overlapped(*staged, Buckets(kElements, 2 * kBlockElements * 4), kFirst,
                                  dense_stations(DType::kBF16, 2, fill));  // exact for these
    for (int step = 0; step < 3; ++step) {
      auto* const values = reinterpret_cast<float*>(made.data());
      for (int64_t i = 0; i < kElements; ++i) {
        values[i] = static_cast<float>((world.rank() * 2 + 1) * (step + i % 11));
      }
      overlapped.begin(context);
      made.upload(context, gradients.view().raw(), kElements * 4);
      overlapped.ready({0, kElements});
      overlapped.finish(context);
      averaged.download(context, gradients.view().raw(), kElements * 4);
      averaged.wait();
      made.wait();
      const auto* const got = reinterpret_cast<const float*>(averaged.data());
      for (int64_t i = 0; i < kElements; ++i) {
        ASSERT_EQ(got[i], static_cast<float>(2 * (step + i % 11))) << i << " in step " << step;
      }
    }
  });
}

// The profile shows the work on a bucket on the exchange's thread, and the step's wait for it.
TEST(OverlappedExchange, ShowsEveryBucketInAProfile) {
  run_thread_world(2, [&](Communicator& world) {
    Profile profile;
    Rank rank(world);
    rank.context().set_profile_track(&profile.track("main"));
    profile.start({.first_counted_step = 0, .first_traced_step = 0, .traced_steps = 1});
    profile.begin_step(0);
    rank.begin(0);
    announce_all(rank);
    rank.finish();
    profile.stop();
    std::map<std::string, std::vector<int64_t>> buckets;
    for (const ProfileEvent& event : profile.track("exchange").events()) {
      if (event.place.operation == nullptr) buckets[event.place.phase].push_back(event.bucket);
    }
    const std::vector<int64_t> once = {0, 1, 2};
    for (const char* phase : {"exchange fill", "exchange pack", "exchange send", "exchange reduce",
                              "exchange return", "exchange deliver"}) {
      std::sort(buckets[phase].begin(), buckets[phase].end());
      EXPECT_EQ(buckets[phase], once) << phase;
    }
    EXPECT_EQ(buckets["exchange wait"].size(), 6u);
    ASSERT_EQ(profile.track("main").sums().size(), 1u);
    EXPECT_STREQ(profile.track("main").sums()[0].place.phase, "exchange wait");
  });
}

TEST(OverlappedExchange, ReportsWhichRangeWasForgotten) {
  std::string message;
  try {
    run_thread_world(2, [](Communicator& world) {
      Rank rank(world);
      rank.begin(0);
      rank.ready(kBlockElements, kElements);
      rank.finish();
    });
  } catch (const Error& error) {
    message = error.what();
  }
  EXPECT_NE(message.find("2048 elements of [0, 4096) are missing"), std::string::npos) << message;
}

}  // namespace
}  // namespace onebit::comm
