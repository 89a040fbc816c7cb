#include "onebit/math/kernels/device_switch.h"

#include <gtest/gtest.h>

namespace onebit {

// Operations as a family declares them: only one of them reports its work.
namespace family {

struct Scale {
  ConstView x;
  View y;
};
struct Silent {
  ConstView x;
};

static Work work_of(const Scale& a) {
  Work work = kernels::moves(a.x, a.y, a.y);
  work.flops = 5;
  return work;
}

ONEBIT_DEVICE_OP(void, scale, const Scale&);
ONEBIT_DEVICE_OP(void, silent, const Silent&);
ONEBIT_DEVICE_OP(double, total, ConstView, View, float);

namespace cpu {
void scale(Context&, const Scale&) {}
void silent(Context&, const Silent&) {}
double total(Context&, ConstView, View, float) {
  return 4;
}
}  // namespace cpu

namespace cuda {
[[maybe_unused]] void scale(Context&, const Scale&) {}
[[maybe_unused]] void silent(Context&, const Silent&) {}
[[maybe_unused]] double total(Context&, ConstView, View, float) {
  return 0;
}
}  // namespace cuda

}  // namespace family

namespace {

TEST(Work, IsSeenWhereAnOperationIsDispatched) {
  const std::vector<float> values(6);
  std::vector<double> wide(4);
  const ConstView x = ConstView::of(values.data(), {2, 3});
  const View y = View::of(wide.data(), {4});
  Context context = Context::cpu(1);
  Profile profile;
  context.set_profile_track(&profile.track("main"));
  profile.start({});
  family::on_device::scale(context, family::Scale{.x = x, .y = y});
  family::on_device::silent(context, family::Silent{.x = x});
  EXPECT_EQ(family::on_device::total(context, x, y, 1.0f), 4);
  profile.stop();
  int found = 0;
  for (const ProfileSum& sum : profile.track("main").sums()) {
    const std::string_view operation = sum.place.operation;
    EXPECT_EQ(sum.calls, 1);
    EXPECT_EQ(sum.work.flops, operation == "scale" ? 5 : 0);
    EXPECT_EQ(sum.work.bytes, operation == "scale" ? 24 + 2 * 32 : operation == "total" ? 56 : 0);
    found += operation == "scale" || operation == "silent" || operation == "total" ? 1 : 0;
  }
  EXPECT_EQ(found, 3);
}

TEST(Work, ViewsThatAreNotGivenMoveNothing) {
  const float value = 1;
  EXPECT_EQ(kernels::moves(ConstView::of(&value, {1}), View(), ConstView()).bytes, 4);
}

}  // namespace
}  // namespace onebit
