#include "onebit/math/device/context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <utility>

#include "onebit/math/device/memory.h"
#include "onebit/math/device/onednn_stream.h"
#include "tests/base/message_of.h"

namespace onebit {
namespace {

using testing::HasSubstr;

TEST(Context, KnowsItsDeviceAndThreads) {
  const Context context = Context::cpu(3);
  EXPECT_TRUE(context.device().is_cpu());
  EXPECT_EQ(context.threads(), 3);
  context.synchronize();
}

TEST(Context, NeedsAThread) {
  EXPECT_THAT(message_of([] { Context::cpu(0); }), HasSubstr("at least one thread, 0"));
  EXPECT_THAT(message_of([] { Context::cpu(-1); }), HasSubstr("-1"));
}

TEST(Context, LoopsOverItsThreads) {
  const Context context = Context::cpu(2);
  std::atomic<int64_t> sum{0}, parts{0};
  context.parallel_for(1000, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sum += i;
    ++parts;
  });
  EXPECT_EQ(sum, 499500);
  EXPECT_EQ(parts, 2);
}

TEST(Context, MovesItsStreams) {
  Context first = Context::cpu(1);
  const OnednnStream* const onednn = &first.onednn();
  Context second(std::move(first));
  EXPECT_EQ(&second.onednn(), onednn);
}

// The emulated device's driver can be given any version.
TEST(Context, CudaWithAnOldDriverIsAnErrorThatNamesTheVersions) {
  if (memory::cuda_device_count() == 0 ||
      memory::describe_cuda_device(0).find("emulated") == std::string::npos) {
    GTEST_SKIP() << "no emulated CUDA device here";
  }
  EXPECT_EQ(memory::why_no_cuda_device(), "");
  setenv("ONEBIT_EMULATED_CUDA_DRIVER", "11080", 1);
  const std::string why = memory::why_no_cuda_device();
  const std::string message = message_of([] { Context::cuda(0); });
  unsetenv("ONEBIT_EMULATED_CUDA_DRIVER");
  EXPECT_THAT(why, HasSubstr("supports CUDA 11.8, and this onebit was built for CUDA 12.4"));
  EXPECT_THAT(message, HasSubstr(why));
  EXPECT_THAT(message, HasSubstr("--device cpu"));
}

TEST(Context, CudaWithoutADeviceIsAnErrorThatNamesTheFix) {
  if (memory::cuda_device_count() > 0) GTEST_SKIP() << "a CUDA device is present";
  EXPECT_THAT(message_of([] { Context::cuda(0); }), HasSubstr("--device cpu"));
}

TEST(ContextDeathTest, ACpuContextHasNoCudaStream) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const Context context = Context::cpu(1);
  EXPECT_DEATH(context.cuda(), "cuda_ != nullptr");
}

TEST(OnednnStream, NamesTheInstructionSet) {
  EXPECT_STRNE(OnednnStream::instruction_set(), "unknown");
}

}  // namespace
}  // namespace onebit
