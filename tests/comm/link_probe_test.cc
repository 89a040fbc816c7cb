#include "onebit/exchange/comm/link_probe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/ground/base/clock.h"
#include "tests/transport/mpi_environment.h"

namespace onebit::comm {
namespace {

TEST(SteadySeconds, IsTheSlopeWhateverComesOnce) {
  const auto streams = [](double once) {
    return std::array{Stream{1, 9}, Stream{2, once + 2 * 0.25}, Stream{4, once + 4 * 0.25},
                      Stream{8, once + 8 * 0.25}};
  };
  EXPECT_DOUBLE_EQ(seconds_per_bucket(streams(0)), 0.25);
  EXPECT_DOUBLE_EQ(seconds_per_bucket(streams(3)), 0.25) << "connections were opened";
  EXPECT_DOUBLE_EQ(seconds_per_bucket(streams(-0.4)), 0.25) << "a shaper let a burst through";
}

TEST(SteadySeconds, TakesWhatThereIs) {
  EXPECT_DOUBLE_EQ(seconds_per_bucket(std::array{Stream{1, 3}}), 3);
  EXPECT_DOUBLE_EQ(seconds_per_bucket(std::array{Stream{1, 3}, Stream{2, 4}}), 1);
  EXPECT_DOUBLE_EQ(seconds_per_bucket(std::array{Stream{1, 3}, Stream{2, 2}}), 1) << "no slope";
}

// One end of a link whose other end makes the same calls and sends the same data.
class Mirror final : public Communicator {
 public:
  struct Link {
    double bytes_per_second, latency_seconds, burst_bytes;
  };
  explicit Mirror(const Link& link) : Communicator(0, 2, 0), link_(link) {}

  std::string_view transport() const override { return "mirror"; }
  [[noreturn]] void abort(const std::string& message) override { throw Error(message); }
  void interrupt() override {}

 protected:
  std::unique_ptr<Communicator> make_duplicate() override {
    return std::make_unique<Mirror>(link_);
  }
  std::unique_ptr<Communicator> make_split(int, const std::vector<int>&) override {
    return std::make_unique<Mirror>(link_);
  }

  class Transfer final : public Request::State {
   public:
    explicit Transfer(double seconds) : seconds_(seconds) {}
    bool test() override { return watch_.seconds() >= seconds_; }
    void wait() override {
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds_ - watch_.seconds()));
    }

   private:
    double seconds_;
    Stopwatch watch_;
  };

  // A token bucket, like tbf and cloud networks.
  std::unique_ptr<Request::State> start(Messages messages) override {
    const auto& sent = messages.send[1];
    const auto& received = messages.receive[1];
    std::memcpy(received.data(), sent.data(), std::min(sent.size(), received.size()));
    const double now = clock_.seconds();
    sent_until_ = std::max(sent_until_, now - link_.burst_bytes / link_.bytes_per_second) +
                  static_cast<double>(sent.size()) / link_.bytes_per_second;
    return std::make_unique<Transfer>(std::max(sent_until_ - now, 0.0) + link_.latency_seconds);
  }

 private:
  Link link_;
  Stopwatch clock_;
  double sent_until_ = 0;
};

// Other programs on the machine may slow a stream. A burst mistaken for the rate would be far
// higher.
void expect_rate(const StreamSpeed& speed, double bytes_per_second) {
  EXPECT_LT(speed.bytes_per_second, 1.5 * bytes_per_second);
  EXPECT_GT(speed.bytes_per_second, 0.2 * bytes_per_second);
}

TEST(LinkProbe, FindsTheRateBehindABurst) {
  constexpr double kRate = 40e6;
  Mirror world({.bytes_per_second = kRate, .latency_seconds = 1e-3, .burst_bytes = 1e6});
  Context context = Context::cpu(1);
  const Stopwatch stopwatch;
  const StreamSpeed speed = probe_stream(context, world, 1 << 20, {.seconds = 0.6});
  EXPECT_LT(stopwatch.seconds(), 30);
  expect_rate(speed, kRate);
  // On two ranks each sends half of a bucket to its owner, and half as its owner.
  EXPECT_NEAR(speed.seconds_per_bucket, (1 << 20) / speed.bytes_per_second, 1e-6);
  EXPECT_GT(speed.sent_bytes, 4 << 20);
  const double latency = probe_latency(world);
  EXPECT_GE(latency, 1e-3);
  EXPECT_LT(latency, 1);
}

TEST(LinkProbe, StaysShortWhereABucketTakesLong) {
  constexpr double kRate = 1e6;
  constexpr int64_t kBucketBytes = 8 << 20;
  Mirror world({.bytes_per_second = kRate, .latency_seconds = 1e-3, .burst_bytes = 1e4});
  Context context = Context::cpu(1);
  const Stopwatch stopwatch;
  const StreamSpeed speed =
      probe_stream(context, world, kBucketBytes, {.seconds = 0.5, .at_most_seconds = 1.5});
  EXPECT_LT(stopwatch.seconds(), 30);
  expect_rate(speed, kRate);
  EXPECT_NEAR(speed.seconds_per_bucket, kBucketBytes / speed.bytes_per_second, 1e-6);
  // Waiting for the link takes almost no processor time.
  EXPECT_LT(speed.processor_seconds_per_bucket, 0.2 * speed.seconds_per_bucket);
}

void check_probe(Communicator& world) {
  Context context = Context::cpu(1);
  const Stopwatch stopwatch;
  const StreamSpeed speed = probe_stream(context, world, 1 << 18, {.seconds = 0.1});
  const double latency = probe_latency(world);
  EXPECT_LT(stopwatch.seconds(), 60);
  EXPECT_GT(latency, 0);
  EXPECT_GT(speed.bytes_per_second, 0);
  EXPECT_TRUE(std::isfinite(speed.bytes_per_second));
  EXPECT_GT(speed.processor_seconds_per_bucket, 0);
  std::array<double, 3> most{latency, speed.bytes_per_second, speed.seconds_per_bucket};
  world.all_reduce(std::span<double>(most), Reduction::kMax);
  EXPECT_EQ(most[0], latency) << "every rank ends with the same numbers";
  EXPECT_EQ(most[1], speed.bytes_per_second);
  EXPECT_EQ(most[2], speed.seconds_per_bucket);
}

TEST(LinkProbe, AgreesOverThreads) {
  run_thread_world(3, check_probe);
}

TEST(MpiLinkProbe, AgreesOverProcesses) {
  ONEBIT_SKIP_WITHOUT_MPIRUN();
  check_probe(*mpi_tests::mpi_world());
}

TEST(LinkProbe, OneRankNeedsNoNetwork) {
  const std::unique_ptr<Communicator> alone = make_single_rank();
  Context context = Context::cpu(1);
  EXPECT_EQ(probe_stream(context, *alone, 1 << 20).seconds_per_bucket, 0);
  EXPECT_EQ(probe_latency(*alone), 0);
}

}  // namespace
}  // namespace onebit::comm
