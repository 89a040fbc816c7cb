#include "onebit/comm/link_probe.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "onebit/base/clock.h"
#include "onebit/comm/thread_communicator.h"
#include "tests/comm/mpi_environment.h"

namespace onebit::comm {
namespace {

void check_probe(Communicator& world) {
  const Stopwatch stopwatch;
  const LinkSpeed link = probe_link(world, 0.1);
  EXPECT_LT(stopwatch.seconds(), 10);
  EXPECT_GT(link.latency_seconds, 0);
  EXPECT_GT(link.bytes_per_second, 0);
  EXPECT_TRUE(std::isfinite(link.bytes_per_second));
  std::array<double, 2> most{link.latency_seconds, link.bytes_per_second};
  world.all_reduce(std::span<double>(most), Reduction::kMax);
  EXPECT_EQ(most[0], link.latency_seconds) << "every rank ends with the same numbers";
  EXPECT_EQ(most[1], link.bytes_per_second);
}

TEST(LinkProbe, AgreesOverThreads) {
  run_thread_world(3, check_probe);
}

TEST(MpiLinkProbe, AgreesOverProcesses) {
  ONEBIT_SKIP_WITHOUT_MPIRUN();
  check_probe(*testing::mpi_world());
}

TEST(LinkProbe, OneRankNeedsNoNetwork) {
  const std::unique_ptr<Communicator> alone = make_single_rank();
  const LinkSpeed link = probe_link(*alone);
  EXPECT_EQ(predicted_seconds(link, 1 << 30, 100), 0);
}

TEST(LinkProbe, PredictsLatencyAndBandwidth) {
  EXPECT_DOUBLE_EQ(predicted_seconds({.latency_seconds = 0.5, .bytes_per_second = 100}, 300, 4), 5);
}

}  // namespace
}  // namespace onebit::comm
