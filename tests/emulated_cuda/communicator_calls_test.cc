// The emulated NCCL: ranks that are threads, each with a device.
#include <gtest/gtest.h>
#include <nccl.h>

#include <latch>
#include <thread>

#include "tests/emulated_cuda/device_memory.h"

namespace emulated_cuda {
namespace {

// The state of a communicator once nothing is in progress.
ncclResult_t state_at_last(ncclComm_t communicator) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    EXPECT_EQ(ncclCommGetAsyncError(communicator, &state), ncclSuccess);
    std::this_thread::yield();
  }
  return state;
}

int devices() {
  int count = 0;
  cudaGetDeviceCount(&count);
  return count;
}

// Connects a rank. The result is the whole start's.
ncclResult_t connect(ncclComm_t* communicator, int ranks, const ncclUniqueId& id, int rank) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  EXPECT_EQ(ncclCommInitRankConfig(communicator, ranks, id, rank, &config), ncclInProgress);
  return state_at_last(*communicator);
}

// Runs body(rank, communicator, result of the start) for each rank on its device (`device_of`).
template <class Body>
void run_ranks(int ranks, int (*device_of)(int), const Body& body) {
  ncclUniqueId id{};
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      cudaSetDevice(device_of(rank));
      ncclComm_t communicator = nullptr;
      const ncclResult_t started = connect(&communicator, ranks, id, rank);
      body(rank, communicator, started);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(EmulatedMessages, RanksExchangeInOrder) {
  if (devices() < 2) GTEST_SKIP() << "one emulated device";
  for (const char* schedule : {"late", "eager", "random:4"}) {
    const InSchedule in(schedule);
    run_ranks(
        2, [](int rank) { return rank; },
        [](int rank, ncclComm_t communicator, ncclResult_t started) {
          ASSERT_EQ(started, ncclSuccess);
          {
            DeviceMemory<int> memory(4, rank);
            const int values[4] = {rank * 10 + 1, rank * 10 + 2};
            memory.assign(values);
            cudaStream_t stream = nullptr;
            cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
            for (int i = 0; i < 2; ++i) {
              ncclGroupStart();
              EXPECT_EQ(ncclSend(memory.data() + i, 4, ncclUint8, 1 - rank, communicator, stream),
                        ncclSuccess);
              EXPECT_EQ(
                  ncclRecv(memory.data() + 2 + i, 4, ncclUint8, 1 - rank, communicator, stream),
                  ncclSuccess);
              EXPECT_EQ(ncclGroupEnd(), ncclInProgress);
              EXPECT_EQ(ncclSend(memory.data() + i, 4, ncclUint8, 1 - rank, communicator, stream),
                        ncclInvalidUsage);  // outside of a group
              EXPECT_EQ(state_at_last(communicator), ncclSuccess);
            }
            cudaStreamSynchronize(stream);
            EXPECT_EQ(memory.values()[2], (1 - rank) * 10 + 1);
            EXPECT_EQ(memory.values()[3], (1 - rank) * 10 + 2);
            cudaStreamDestroy(stream);
          }
          ncclCommDestroy(communicator);
        });
  }
}

TEST(EmulatedMessages, TwoRanksOnOneDeviceAreRefused) {
  run_ranks(
      2, [](int) { return 0; },
      [](int, ncclComm_t communicator, ncclResult_t started) {
        EXPECT_EQ(started, ncclInvalidUsage);
        ncclCommDestroy(communicator);
      });
}

// If a rank is missing, the other one's event is never reached, and an abort releases it.
TEST(EmulatedMessages, AMessageThatNobodySendsDoesNotArrive) {
  if (devices() < 2) GTEST_SKIP() << "one emulated device";
  // A rank that has not seen yet that all have joined would see the other one's abort instead.
  std::latch both_started(2);
  run_ranks(
      2, [](int rank) { return rank; },
      [&both_started](int rank, ncclComm_t communicator, ncclResult_t started) {
        both_started.arrive_and_wait();
        EXPECT_EQ(started, ncclSuccess);
        if (rank == 1) {
          ncclCommDestroy(communicator);
          return;
        }
        const DeviceMemory<int> memory(1, rank);
        cudaStream_t stream = nullptr;
        cudaEvent_t event = nullptr;
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        cudaEventCreate(&event);
        ncclGroupStart();
        ncclRecv(memory.data(), 4, ncclUint8, 1, communicator, stream);
        ncclGroupEnd();
        EXPECT_EQ(state_at_last(communicator), ncclSuccess);
        cudaEventRecord(event, stream);
        for (int i = 0; i < 20; ++i) EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
        ncclCommAbort(communicator);
        EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
        cudaEventDestroy(event);
        cudaStreamDestroy(stream);
        cudaGetLastError();
      });
}

}  // namespace
}  // namespace emulated_cuda
