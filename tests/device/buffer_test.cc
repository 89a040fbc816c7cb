#include "onebit/math/device/buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "onebit/math/device/memory.h"
#include "tests/base/message_of.h"

namespace onebit {
namespace {

using testing::HasSubstr;

TEST(Buffer, IsAlignedAndWritable) {
  for (const int64_t size_bytes : {1, 63, 64, 65, 4096, 1000003}) {
    const Buffer buffer(Device{}, size_bytes);
    EXPECT_EQ(buffer.size_bytes(), size_bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u);
    std::memset(buffer.data(), 0xA5, static_cast<size_t>(size_bytes));
  }
}

TEST(Buffer, EmptyOwnsNothing) {
  const int64_t before = memory::allocation_count();
  const Buffer none, zero(Device{}, 0);
  EXPECT_EQ(none.data(), nullptr);
  EXPECT_EQ(zero.data(), nullptr);
  EXPECT_EQ(memory::allocation_count(), before);
}

TEST(Buffer, MovesItsMemory) {
  Buffer first(Device{}, 100);
  std::byte* const data = first.data();
  Buffer second(std::move(first));
  EXPECT_EQ(second.data(), data);
  Buffer third(Device{}, 10);
  third = std::move(second);
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(third.size_bytes(), 100);
}

TEST(Buffer, FillZeroReachesEveryByte) {
  Buffer buffer(Device{}, 1001);
  std::memset(buffer.data(), 0xFF, 1001);
  buffer.fill_zero();
  for (int64_t i = 0; i < 1001; ++i) ASSERT_EQ(buffer.data()[i], std::byte{0});
}

TEST(Buffer, TooLargeIsAnErrorWithTheSize) {
  const int64_t size_bytes = int64_t{1} << 60;
  EXPECT_THAT(message_of([&] { Buffer buffer(Device{}, size_bytes); }),
              HasSubstr("out of memory: 1152921504606846976 bytes"));
}

TEST(Memory, CountsAllocations) {
  const int64_t before = memory::allocation_count();
  const Buffer one(Device{}, 8), two(Device{}, 8);
  EXPECT_EQ(memory::allocation_count(), before + 2);
}

TEST(Memory, CountsTheMostThatIsHeldAtOnce) {
  memory::take_most_held_bytes();
  const int64_t before = memory::take_most_held_bytes();
  { const Buffer one(Device{}, 800); }
  const Buffer two(Device{}, 500);
  { const Buffer three(Device{}, 200); }
  EXPECT_EQ(memory::take_most_held_bytes(), before + 800);
  EXPECT_EQ(memory::take_most_held_bytes(), before + 500);
}

TEST(Memory, CopiesBytes) {
  const char from[] = "sixteen bytes...";
  char to[] = "................";
  memory::copy(Device{}, to, Device{}, from, 7);
  EXPECT_STREQ(to, "sixteen.........");
  memory::copy(Device{}, to, Device{}, nullptr, 0);
}

TEST(Device, ComparesAndNames) {
  EXPECT_TRUE(Device{}.is_cpu());
  EXPECT_EQ(Device{}, (Device{DeviceType::kCpu, 0}));
  EXPECT_NE((Device{DeviceType::kCuda, 0}), (Device{DeviceType::kCuda, 1}));
  EXPECT_EQ(name_of(DeviceType::kCpu), "cpu");
  EXPECT_EQ(name_of(DeviceType::kCuda), "cuda");
}

}  // namespace
}  // namespace onebit
