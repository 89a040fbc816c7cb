// One body for all transports: the contract of each collective.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "onebit/exchange/comm/collectives.h"
#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/exchange/transport/device_communicator.h"
#include "onebit/exchange/transport/nccl_communicator.h"
#include "onebit/math/device/buffer.h"
#include "onebit/math/device/memory.h"
#include "tests/transport/mpi_environment.h"
#include "tests/transport/tcp_world.h"

namespace onebit::transport {
namespace {

std::vector<std::byte> message(int from, int to, int64_t size_bytes) {
  std::vector<std::byte> bytes(static_cast<size_t>(size_bytes),
                               static_cast<std::byte>(from * 31 + to * 7));
  // Enough marks to distinguish positions, few enough for the sanitizers.
  for (size_t i = 0; i < bytes.size(); i += 61) bytes[i] = static_cast<std::byte>(i / 61);
  return bytes;
}

void append(std::vector<std::byte>& to, const std::vector<std::byte>& bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

void check_all_reduce(comm::Communicator& world) {
  const int ranks = world.world_size();
  // Values whose sum depends on the order: every rank must have added in rank order.
  const auto value_of = [](int rank) { return 1.0f / static_cast<float>(3 + 7 * rank); };
  std::vector<float> sums{value_of(world.rank()), 1.0f};
  world.all_reduce(std::span<float>(sums), comm::Reduction::kSum);
  float expected = value_of(0);
  for (int rank = 1; rank < ranks; ++rank) expected += value_of(rank);
  EXPECT_EQ(sums[0], expected);
  EXPECT_EQ(sums[1], static_cast<float>(ranks));

  std::vector<int64_t> counts{world.rank(), -world.rank()};
  world.all_reduce(std::span<int64_t>(counts), comm::Reduction::kMax);
  EXPECT_EQ(counts, (std::vector<int64_t>{ranks - 1, 0}));
  std::vector<double> least{100.0 - world.rank(), world.rank() == ranks / 2 ? std::nan("") : 1.0};
  world.all_reduce(std::span<double>(least), comm::Reduction::kMin);
  EXPECT_EQ(least[0], 100.0 - (ranks - 1));
  EXPECT_TRUE(std::isnan(least[1]));
}

void check_all_gather(comm::Communicator& world) {
  const int ranks = world.world_size();
  const auto size_of = [](int rank) { return int64_t{(rank * 5) % 4}; };  // some are empty
  std::vector<int64_t> sizes_bytes;
  std::vector<std::byte> expected, expected_equal;
  for (int rank = 0; rank < ranks; ++rank) {
    sizes_bytes.push_back(size_of(rank));
    append(expected, message(rank, 0, size_of(rank)));
    append(expected_equal, message(rank, 1, 6));
  }
  std::vector<std::byte> all(expected.size());
  world.all_gather_v(message(world.rank(), 0, size_of(world.rank())), all, sizes_bytes);
  EXPECT_EQ(all, expected);

  // The operation may be in place.
  std::vector<std::byte> equal(static_cast<size_t>(ranks) * 6);
  const std::span<std::byte> own =
      std::span(equal).subspan(static_cast<size_t>(world.rank()) * 6, 6);
  std::ranges::copy(message(world.rank(), 1, 6), own.begin());
  world.all_gather(own, equal);
  EXPECT_EQ(equal, expected_equal);
}

struct Exchange {
  std::vector<std::byte> send, receive, expected;
  std::vector<int64_t> send_bytes, receive_bytes;

  Exchange(const comm::Communicator& world, int64_t scale) {
    const int self = world.rank();
    for (int peer = 0; peer < world.world_size(); ++peer) {
      send_bytes.push_back(size_of(self, peer, scale));
      receive_bytes.push_back(size_of(peer, self, scale));
      append(send, message(self, peer, send_bytes.back()));
      append(expected, message(peer, self, receive_bytes.back()));
    }
    receive.resize(expected.size());
  }
  comm::AllToAll chunks() { return {send, send_bytes, receive, receive_bytes}; }

  static int64_t size_of(int from, int to, int64_t scale) {
    return scale * ((from + 2 * to) % 3);  // some are empty
  }
};

void check_all_to_all(comm::Communicator& world) {
  // MPI sends messages of up to 4 MiB in pieces of 60 KiB, and larger ones as a whole. TCP sends
  // larger ones when they are expected.
  for (const int64_t scale : {1, 1000, 60 * 1024, 60 * 1024 + 1, (2 << 20) + 1}) {
    Exchange exchange(world, scale);
    const int64_t before = world.wire_bytes_sent();
    world.all_to_all_v(exchange.chunks());
    EXPECT_EQ(exchange.receive, exchange.expected);
    const auto self = static_cast<size_t>(world.rank());
    const int64_t sent = static_cast<int64_t>(exchange.send.size()) - exchange.send_bytes[self];
    EXPECT_EQ(world.wire_bytes_sent() - before, sent) << "bytes to itself do not travel";
  }
}

// Requests may be waited for in any order, and a different one on every rank.
void check_waits_in_any_order(comm::Communicator& world) {
  std::vector<Exchange> exchanges;
  for (int i = 0; i < 5; ++i) exchanges.emplace_back(world, 100 + 9000 * i);
  std::vector<comm::Request> requests;
  for (Exchange& exchange : exchanges) {
    requests.push_back(world.start_all_to_all_v(exchange.chunks()));
  }
  std::vector<float> sum{1.0f};
  requests.push_back(world.start_all_reduce(std::span<float>(sum), comm::Reduction::kSum));
  requests.push_back(world.start_barrier());
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::rotate(order.begin(), order.begin() + world.rank() % 7, order.end());
  if (world.rank() % 2 == 1) std::ranges::reverse(order);
  for (const size_t i : order) requests[i].wait();
  for (const Exchange& exchange : exchanges) EXPECT_EQ(exchange.receive, exchange.expected);
  EXPECT_EQ(sum[0], static_cast<float>(world.world_size()));
}

void check_test_completes(comm::Communicator& world) {
  Exchange exchange(world, 10);
  comm::Request request = world.start_all_to_all_v(exchange.chunks());
  while (!request.test()) std::this_thread::yield();
  EXPECT_EQ(exchange.receive, exchange.expected);
  EXPECT_TRUE(request.test());
  request.wait();
}

void check_broadcast(comm::Communicator& world) {
  for (int root = 0; root < world.world_size(); ++root) {
    std::vector<std::byte> bytes(17);
    if (world.rank() == root) bytes = message(root, root, 17);
    world.broadcast(bytes, root);
    EXPECT_EQ(bytes, message(root, root, 17));
  }
}

void check_chunked(comm::Communicator& world) {
  const int ranks = world.world_size();
  for (const int64_t size : {0, 1, 3, 17, 100'003}) {
    const auto count = static_cast<size_t>(size);
    for (const int root : {0, ranks - 1}) {
      const std::vector<std::byte> sent = message(root, 5, size);
      std::vector<std::byte> bytes = world.rank() == root ? sent : std::vector<std::byte>(count);
      const int64_t before = world.wire_bytes_sent();
      comm::broadcast_in_chunks(world, bytes, root);
      EXPECT_EQ(bytes, sent);
      EXPECT_LE(world.wire_bytes_sent() - before, 2 * (size + ranks));
    }
    std::vector<float> sums(count), plain(count);
    std::vector<uint8_t> flags(count), united(count);
    for (size_t i = 0; i < count; ++i) {
      // The order of additions shows in the sums.
      plain[i] = sums[i] = 1.0f / static_cast<float>(3 + 7 * world.rank() + static_cast<int>(i));
      flags[i] = static_cast<uint8_t>(i % 3 == static_cast<size_t>(world.rank()) ? 1 << i % 8 : 0);
      united[i] = static_cast<uint8_t>(i % 3 < static_cast<size_t>(ranks) ? 1 << i % 8 : 0);
    }
    world.all_reduce(std::span(plain), comm::Reduction::kSum);
    const int64_t before = world.wire_bytes_sent();
    comm::sum_in_chunks(world, sums);
    comm::unite_in_chunks(world, flags);
    EXPECT_EQ(sums, plain);
    EXPECT_EQ(flags, united);
    EXPECT_LE(world.wire_bytes_sent() - before, 2 * 5 * (size + ranks));
    std::vector<float> gathered(count, -1.0f), whole(count);
    std::iota(whole.begin(), whole.end(), 0.0f);
    const Range own = comm::equal_chunk(size, ranks, world.rank());
    std::copy(whole.begin() + own.begin, whole.begin() + own.end, gathered.begin() + own.begin);
    const int64_t before_gather = world.wire_bytes_sent();
    comm::gather_chunks(world, gathered);
    EXPECT_EQ(gathered, whole);
    EXPECT_LE(world.wire_bytes_sent() - before_gather, 4 * (size + ranks));
  }
}

// Two threads of every rank, each with its own communicator.
void check_duplicate(comm::Communicator& world) {
  const std::unique_ptr<comm::Communicator> other = world.duplicate();
  EXPECT_EQ(other->rank(), world.rank());
  std::thread beside([&other] {
    for (int i = 0; i < 20; ++i) {
      Exchange exchange(*other, 1 + i);
      other->all_to_all_v(exchange.chunks());
      EXPECT_EQ(exchange.receive, exchange.expected);
    }
  });
  for (int i = 0; i < 20; ++i) {
    Exchange exchange(world, 500 + i);
    world.all_to_all_v(exchange.chunks());
    EXPECT_EQ(exchange.receive, exchange.expected);
  }
  beside.join();
}

// Rows and columns of the ranks, at the same time: messages of one do not reach the other.
void check_split(comm::Communicator& world) {
  constexpr int kColumns = 3;
  const int row = world.rank() / kColumns, column = world.rank() % kColumns;
  const std::unique_ptr<comm::Communicator> by_row = world.split(row),
                                            by_column = world.split(column);
  EXPECT_EQ(by_row->rank(), column);
  EXPECT_EQ(by_column->rank(), row);
  EXPECT_EQ(by_row->world_size(), std::min(kColumns, world.world_size() - row * kColumns));
  EXPECT_EQ(by_row->transport(), world.transport());
  const std::unique_ptr<comm::Communicator> again = by_row->split(0);
  EXPECT_EQ(again->world_size(), by_row->world_size());
  for (comm::Communicator* part : {by_row.get(), by_column.get(), again.get()}) {
    Exchange exchange(*part, 1000);
    part->all_to_all_v(exchange.chunks());
    EXPECT_EQ(exchange.receive, exchange.expected);
  }
  std::vector<int64_t> ranks{world.rank()};
  by_column->all_reduce(std::span<int64_t>(ranks), comm::Reduction::kMin);
  EXPECT_EQ(ranks[0], column);
  by_row->all_reduce(std::span<int64_t>(ranks), comm::Reduction::kMax);
  EXPECT_EQ(ranks[0], by_row->world_size() - 1);
  world.barrier();
}

void check_contract(comm::Communicator& world) {
  EXPECT_GE(world.local_rank(), 0);
  EXPECT_LE(world.local_rank(), world.rank());
  check_all_reduce(world);
  check_all_gather(world);
  check_all_to_all(world);
  check_waits_in_any_order(world);
  check_test_completes(world);
  check_broadcast(world);
  check_chunked(world);
  world.barrier();
  check_duplicate(world);
  check_split(world);
}

class ThreadContract : public ::testing::TestWithParam<int> {};

TEST_P(ThreadContract, Holds) {
  comm::run_thread_world(GetParam(), check_contract);
}

INSTANTIATE_TEST_SUITE_P(Ranks, ThreadContract, ::testing::Range(1, 9));

class TcpContract : public ::testing::TestWithParam<int> {};

TEST_P(TcpContract, Holds) {
  tcp_tests::run_tcp_world(GetParam(), [](comm::Communicator& world) {
    EXPECT_EQ(world.transport(), "tcp");
    check_contract(world);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, TcpContract, ::testing::Values(1, 2, 3, 5, 8));

TEST(TcpContract, HoldsOverIpVersion6) {
  if (!tcp_tests::has_ip_version_6()) GTEST_SKIP() << "no IPv6 here";
  tcp_tests::run_tcp_world(tcp_tests::options_of(3, "::1"), check_contract);
}

TEST(MpiContract, Holds) {
  ONEBIT_SKIP_WITHOUT_MPIRUN();
  EXPECT_EQ(mpi_tests::mpi_world()->transport(), "mpi");
  check_contract(*mpi_tests::mpi_world());
}

// Buffers on a device, filled from and read back to the host, and moved by the transport.
struct DeviceBytes {
  Buffer buffer;

  DeviceBytes(Device device, const std::vector<std::byte>& host)
      : buffer(device, static_cast<int64_t>(host.size())) {
    memory::copy(device, buffer.data(), Device{}, host.data(), buffer.size_bytes());
  }
  std::span<std::byte> span() const {
    return {buffer.data(), static_cast<size_t>(buffer.size_bytes())};
  }
  std::vector<std::byte> host() const {
    std::vector<std::byte> bytes(static_cast<size_t>(buffer.size_bytes()));
    memory::copy(Device{}, bytes.data(), buffer.device(), buffer.data(), buffer.size_bytes());
    return bytes;
  }
};

void check_device_buffers(comm::Communicator& world) {
  for (const int64_t scale : {1, 1000, 60000}) {
    Exchange exchange(world, scale);
    const DeviceBytes send(world.device(), exchange.send);
    const DeviceBytes receive(world.device(), exchange.receive);
    world.all_to_all_v({send.span(), exchange.send_bytes, receive.span(), exchange.receive_bytes});
    EXPECT_EQ(receive.host(), exchange.expected);
  }
  std::vector<std::byte> expected;
  for (int rank = 0; rank < world.world_size(); ++rank) append(expected, message(rank, 3, 4096));
  const DeviceBytes mine(world.device(), message(world.rank(), 3, 4096));
  const DeviceBytes all(world.device(), std::vector<std::byte>(expected.size()));
  world.all_gather(mine.span(), all.span());
  EXPECT_EQ(all.host(), expected);
  const DeviceBytes sent(world.device(), message(world.rank(), 4, 999));
  world.broadcast(sent.span(), 0);
  EXPECT_EQ(sent.host(), message(0, 4, 999));
  // The transport must not read before the data is written, whatever its stream.
  DeviceBytes cleared(world.device(), message(world.rank(), 5, 999));
  if (world.rank() == 0) cleared.buffer.fill_zero();
  world.broadcast(cleared.span(), 0);
  EXPECT_EQ(cleared.host(), std::vector<std::byte>(999));
}

// Host memory bypasses the device's transport, so this part needs no device.
TEST(StagedContract, HoldsForHostMemory) {
  comm::run_thread_world(3, [](comm::Communicator& world) {
    const auto staged =
        make_device_communicator(world.duplicate(), Device{}, DeviceTransport::kStaged);
    check_contract(*staged);
  });
}

constexpr Device kFirstDevice{DeviceType::kCuda, 0};

TEST(StagedContract, HoldsForDeviceMemory) {
  if (memory::cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device here";
  for (const int ranks : {1, 2, 4}) {
    comm::run_thread_world(ranks, [](comm::Communicator& world) {
      const auto staged =
          make_device_communicator(world.duplicate(), kFirstDevice, DeviceTransport::kStaged);
      check_contract(*staged);
      check_device_buffers(*staged);
    });
  }
}

TEST(StagedContract, HoldsForDeviceMemoryUnderMpi) {
  ONEBIT_SKIP_WITHOUT_MPIRUN();
  if (memory::cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device here";
  const auto staged = make_device_communicator(mpi_tests::mpi_world()->duplicate(), kFirstDevice,
                                               DeviceTransport::kStaged);
  check_device_buffers(*staged);
}

// One rank per device, as threads of this process.
TEST(NcclContract, HoldsForDeviceMemory) {
  const int devices = memory::cuda_device_count();
  if (devices == 0) GTEST_SKIP() << "no CUDA device here";
  if (!nccl_is_built()) GTEST_SKIP() << "NCCL is not built in";
  comm::run_thread_world(devices, [](comm::Communicator& world) {
    const auto nccl = make_device_communicator(world.duplicate(), {DeviceType::kCuda, world.rank()},
                                               DeviceTransport::kNccl);
    EXPECT_EQ(nccl->transport(), "nccl");
    check_contract(*nccl);
    check_device_buffers(*nccl);
  });
}

// A duplicate that only sends host memory, for example a checkpoint writer's, uses no device
// memory.
TEST(NcclContract, DuplicatesTakeNothingOfADeviceUntilTheySendItsMemory) {
  const int devices = memory::cuda_device_count();
  if (devices < 2 || !nccl_is_built()) GTEST_SKIP() << "needs two CUDA devices and NCCL";
  const int64_t before = nccl_communicators_made();
  comm::run_thread_world(devices, [](comm::Communicator& world) {
    const auto nccl = make_device_communicator(world.duplicate(), {DeviceType::kCuda, world.rank()},
                                               DeviceTransport::kNccl);
    const auto of_host = nccl->duplicate();
    int64_t sum = 1;
    of_host->all_reduce(std::span(&sum, 1), comm::Reduction::kSum);
    EXPECT_EQ(sum, world.world_size());
    check_device_buffers(*nccl);
  });
  EXPECT_EQ(nccl_communicators_made() - before, devices);
}

}  // namespace
}  // namespace onebit::transport
