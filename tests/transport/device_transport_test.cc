#include <fmt/format.h>
#include <gtest/gtest.h>

#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/exchange/transport/device_communicator.h"
#include "onebit/exchange/transport/mpi_communicator.h"
#include "onebit/exchange/transport/nccl_communicator.h"
#include "onebit/math/device/memory.h"
#include "tests/base/message_of.h"
#include "tests/transport/mpi_environment.h"

namespace onebit::transport {
namespace {

// `ranks` that are given `devices` in turn.
TransportFacts facts(const std::string& backend, int ranks, int devices, bool aware = false,
                     bool takes = false) {
  TransportFacts facts{.backend = backend, .cuda_aware = aware, .mpi_takes_device_memory = takes};
  for (int rank = 0; rank < ranks; ++rank) {
    facts.device_uuids.push_back(fmt::format("uuid-{}", rank % devices));
  }
  return facts;
}

// An MPI without CUDA would read a device pointer as a host pointer and crash.
TEST(DeviceTransport, PointersGoStraightToMpiOnlyIfItTakesThem) {
  EXPECT_EQ(transport_of(facts("mpi", 2, 2)), DeviceTransport::kStaged);
  EXPECT_EQ(transport_of(facts("mpi", 2, 2, false, true)), DeviceTransport::kStaged);
  EXPECT_EQ(transport_of(facts("mpi", 2, 2, true, true)), DeviceTransport::kCudaAware);
  for (const char* backend : {"mpi", ""}) {
    const std::string error = message_of([&] { transport_of(facts(backend, 3, 2, true)); });
    EXPECT_NE(error.find("optimizer.params.cuda_aware"), std::string::npos) << error;
  }
}

TEST(DeviceTransport, WithoutABackendNcclWhereEveryRankHasADevice) {
  const auto built_or = [](DeviceTransport other) {
    return nccl_is_built() ? DeviceTransport::kNccl : other;
  };
  for (const int ranks : {1, 2, 4}) {
    EXPECT_EQ(transport_of(facts("", ranks, 4)), built_or(DeviceTransport::kStaged));
    // cuda_aware describes MPI, which is used if NCCL is not built.
    EXPECT_EQ(transport_of(facts("", ranks, 4, true, true)), built_or(DeviceTransport::kCudaAware));
  }
  EXPECT_EQ(transport_of(facts("", 5, 4)), DeviceTransport::kStaged);
  EXPECT_EQ(transport_of(facts("", 5, 4, true, true)), DeviceTransport::kCudaAware);
}

TEST(DeviceTransport, NcclIsRefusedWhereRanksShareADevice) {
  EXPECT_EQ(transport_of(facts("nccl", 4, 4, true)), DeviceTransport::kNccl);
  const std::string error = message_of([] { transport_of(facts("nccl", 5, 4)); });
  EXPECT_NE(error.find("comm_backend_name"), std::string::npos) << error;
  EXPECT_NE(error.find("ranks 0 and 4 have the same one, uuid-0"), std::string::npos) << error;
  EXPECT_NE(error.find("\"mpi\""), std::string::npos) << error;
}

TEST(DeviceTransport, WhatDoesNotConnectTheProcessesIsRefused) {
  TransportFacts over_tcp = facts("tcp", 2, 2);
  over_tcp.host = "tcp";
  EXPECT_EQ(transport_of(over_tcp), DeviceTransport::kStaged);
  over_tcp.backend = "mpi";
  EXPECT_NE(message_of([&] { transport_of(over_tcp); }).find("connected by tcp"),
            std::string::npos);
  EXPECT_NE(message_of([&] { transport_of(facts("tcp", 2, 2)); }).find("torchrun"),
            std::string::npos);
}

// They would wait for each other on different transports.
TEST(DeviceTransport, SomeRanksOnCpusAreAnError) {
  for (const char* backend : {"", "nccl", "mpi"}) {
    TransportFacts mixed = facts(backend, 3, 3);
    mixed.device_uuids[1].clear();
    const std::string error = message_of([&] { transport_of(mixed); });
    EXPECT_NE(error.find("rank 0 uses a CUDA device, and rank 1 the CPU"), std::string::npos);
    EXPECT_NE(error.find("--device cpu"), std::string::npos) << error;
  }
}

// Devices are compared by identity, not by their number in the process or the number of devices.
TEST(CudaTransport, RanksKnowWhetherTheyShareADevice) {
  const int devices = memory::cuda_device_count();
  if (devices < 2) GTEST_SKIP() << "no two CUDA devices here";
  comm::run_thread_world(4, [&](comm::Communicator& world) {
    const Device one_of_two{DeviceType::kCuda, world.rank() % 2};
    EXPECT_EQ(
        transport_of({.backend = "", .device_uuids = device_uuids_of_ranks(world, one_of_two)}),
        DeviceTransport::kStaged);
    const std::unique_ptr<comm::Communicator> pair = world.split(world.rank() / 2);
    const Device mine{DeviceType::kCuda, pair->rank()};
    EXPECT_EQ(transport_of({.backend = "", .device_uuids = device_uuids_of_ranks(*pair, mine)}),
              nccl_is_built() ? DeviceTransport::kNccl : DeviceTransport::kStaged);
    const Device same{DeviceType::kCuda, 1}, host{};
    const std::vector<std::string> shared = device_uuids_of_ranks(*pair, same);
    EXPECT_EQ(shared, std::vector<std::string>(2, memory::cuda_device_uuid(1)));
    EXPECT_EQ(device_uuids_of_ranks(*pair, host), std::vector<std::string>(2));
  });
}

TEST(MpiDeviceTransport, RanksOfOneJobHearTheSameOfMpi) {
  ONEBIT_SKIP_WITHOUT_MPIRUN();
  const int64_t mine = mpi_takes_device_memory() ? 1 : 0;
  int64_t least = mine;
  mpi_tests::mpi_world()->all_reduce(std::span(&least, 1), comm::Reduction::kMin);
  EXPECT_EQ(least, mine);
}

}  // namespace
}  // namespace onebit::transport
