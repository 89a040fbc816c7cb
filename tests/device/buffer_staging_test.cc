// Copies for which neither side waits.
#include "onebit/math/device/buffer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

#include "onebit/math/device/memory.h"
#include "tests/device/device_test.h"

namespace onebit {
namespace {

using StagingTest = DeviceTest;

constexpr int64_t kBytes = 100003, kBusyBytes = int64_t{64} << 20;

TEST_P(StagingTest, BytesGoThereAndBackInTheOrderOfTheWork) {
  const Context there = context();
  Staging from(there.device(), kBytes), to(there.device(), kBytes);
  const Buffer memory(there.device(), kBytes);
  for (int round = 0; round < 3; ++round) {
    from.wait();
    std::memset(from.data(), round + 1, static_cast<size_t>(kBytes));
    from.upload(there, memory.data(), kBytes);
    to.download(there, memory.data(), kBytes);
    to.wait();
    for (const int64_t at : {int64_t{0}, kBytes / 2, kBytes - 1}) {
      ASSERT_EQ(to.data()[at], static_cast<std::byte>(round + 1)) << at;
    }
  }
}

TEST_P(StagingTest, OneContextsCopyComesBeforeTheWorkOfAnotherThatWaitsForIt) {
  const Context copies = context(), work = context();
  const Buffer memory(copies.device(), kBytes), busy(copies.device(), kBusyBytes);
  Staging from(copies.device(), kBytes), to(copies.device(), kBytes);
  Staging busy_on_host(copies.device(), kBusyBytes);
  std::memset(from.data(), 7, static_cast<size_t>(kBytes));
  std::memset(to.data(), 0, static_cast<size_t>(kBytes));
  busy_on_host.upload(copies, busy.data(), kBusyBytes);  // delays the following copies
  from.upload(copies, memory.data(), kBytes);
  work.wait_for(copies.milestone());
  to.download(work, memory.data(), kBytes);
  to.wait();
  EXPECT_EQ(to.data()[kBytes - 1], std::byte{7});
}

TEST_P(StagingTest, MovesWithWhatIsUnderWay) {
  const Context there = context();
  const Buffer memory(there.device(), kBytes);
  Staging first(there.device(), kBytes);
  std::byte* const data = first.data();
  first.upload(there, memory.data(), 0);
  first.upload(there, memory.data(), kBytes);
  Staging second = std::move(first);
  second.wait();
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(second.size_bytes(), kBytes);
  Staging().wait();
}

INSTANTIATE_TEST_SUITE_P(Devices, StagingTest, testing::Values(DeviceType::kCpu, DeviceType::kCuda),
                         name_of_device);

}  // namespace
}  // namespace onebit
