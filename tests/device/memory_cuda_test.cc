// Memory, streams and milestones of a CUDA device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <vector>

#include "onebit/math/device/buffer.h"
#include "onebit/math/device/context.h"
#include "onebit/math/device/memory.h"
#include "tests/base/message_of.h"

namespace onebit {
namespace {

constexpr Device kFirst{DeviceType::kCuda, 0};

class CudaDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (memory::cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device here";
  }
};

std::vector<std::byte> contents(const Buffer& buffer) {
  std::vector<std::byte> bytes(static_cast<size_t>(buffer.size_bytes()));
  memory::copy(Device{}, bytes.data(), buffer.device(), buffer.data(), buffer.size_bytes());
  return bytes;
}

TEST_F(CudaDevice, BytesGoThereAndBack) {
  std::vector<std::byte> bytes(100003);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
  const Buffer first(kFirst, 100003), second(kFirst, 100003);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first.data()) % 256, 0u);
  memory::copy(kFirst, first.data(), Device{}, bytes.data(), 100003);
  memory::copy(kFirst, second.data(), kFirst, first.data(), 100003);
  EXPECT_EQ(contents(second), bytes);
  std::byte* const staging = memory::allocate_staging(0, 100003);
  memory::copy_beside(0, staging, second.data(), 100003);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), staging));
  memory::release_staging(0, staging);
}

TEST_F(CudaDevice, FillZeroReachesEveryByte) {
  Buffer buffer(kFirst, 1001);
  const std::vector<std::byte> ones(1001, std::byte{0xFF});
  memory::copy(kFirst, buffer.data(), Device{}, ones.data(), 1001);
  buffer.fill_zero();
  EXPECT_EQ(contents(buffer), std::vector<std::byte>(1001));
}

TEST_F(CudaDevice, FindsTheDeviceOfMemory) {
  const Buffer there(kFirst, 64), here(Device{}, 64);
  EXPECT_EQ(memory::device_of(0, there.data()), kFirst);
  EXPECT_EQ(memory::device_of(0, here.data()), Device{});
}

TEST_F(CudaDevice, TooLargeIsAnErrorWithTheSize) {
  const int64_t size_bytes = int64_t{1} << 50;
  EXPECT_THAT(message_of([&] { Buffer buffer(kFirst, size_bytes); }),
              testing::HasSubstr("1125899906842624 bytes requested"));
  const Buffer after(kFirst, 64);  // the error is not sticky
  EXPECT_NE(after.data(), nullptr);
}

TEST_F(CudaDevice, AContextWaitsForAMilestoneOfAnother) {
  const Context first = Context::cuda(0), second = Context::cuda(0);
  second.wait_for(Milestone());
  second.wait_for(first.milestone());
  second.synchronize();
}

// Also on a thread that has never selected the device: each device has its own default stream.
TEST_F(CudaDevice, CopiesAndFillsFollowTheWorkOfTheirDevice) {
  if (memory::cuda_device_count() < 2) GTEST_SKIP() << "one CUDA device here";
  constexpr Device kSecond{DeviceType::kCuda, 1};
  constexpr int64_t kBytes = 4096;
  const Context context = Context::cuda(1);
  Staging staging(kSecond, kBytes);
  std::fill_n(staging.data(), kBytes, std::byte{0x5A});
  Buffer read(kSecond, kBytes), filled(kSecond, kBytes);
  std::vector<std::byte> seen;
  staging.upload(context, read.data(), kBytes);
  std::thread([&] { seen = contents(read); }).join();
  staging.upload(context, filled.data(), kBytes);
  std::thread([&] { filled.fill_zero(); }).join();
  const std::vector<std::byte> zeros = contents(filled);
  staging.wait();
  EXPECT_EQ(seen, std::vector<std::byte>(kBytes, std::byte{0x5A}));
  EXPECT_EQ(zeros, std::vector<std::byte>(kBytes));
}

TEST_F(CudaDevice, EveryDeviceHasAUuidOfItsOwn) {
  const std::string first = memory::cuda_device_uuid(0);
  EXPECT_THAT(first, testing::MatchesRegex("[0-9a-f]+-[0-9a-f]+-[0-9a-f]+-[0-9a-f]+-[0-9a-f]+"));
  EXPECT_EQ(first.size(), 36u);
  if (memory::cuda_device_count() < 2) GTEST_SKIP() << "one CUDA device here";
  EXPECT_NE(memory::cuda_device_uuid(1), first);
}

TEST_F(CudaDevice, AnAbsentIndexIsAnError) {
  EXPECT_THAT(message_of([] { Context::cuda(memory::cuda_device_count()); }),
              testing::HasSubstr("no CUDA device"));
}

TEST(Milestone, OfACpuIsReachedAlready) {
  const Context first = Context::cpu(1), second = Context::cpu(1);
  second.wait_for(first.milestone());
}

TEST(DeviceOf, HostMemoryIsTheCpus) {
  const int here = 0;
  EXPECT_EQ(memory::device_of(0, &here), Device{});
}

}  // namespace
}  // namespace onebit
