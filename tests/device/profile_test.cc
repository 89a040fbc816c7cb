#include "onebit/math/device/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

namespace onebit {
namespace {

using testing::ElementsAre;

constexpr ProfileWindow kEveryStep{
    .first_counted_step = 1, .first_traced_step = 1, .traced_steps = 100};

class ProfileTest : public testing::Test {
 protected:
  ProfileTest() { context_.set_profile_track(&profile_.track("main")); }

  ProfileTrack& main() { return profile_.track("main"); }

  void operation(const char* name, const Work& work = {}) {
    const OperationSpan span(context_, name, [&] { return work; });
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  // A step with a phase and an operation in it, and another operation in no phase.
  void step(int64_t number) {
    const StepSpan span(context_, number);
    {
      const PhaseSpan phase(context_, "forward");
      operation("product", {.flops = 10, .bytes = 3});
    }
    operation("norm");
  }

  Profile profile_;
  Context context_ = Context::cpu(1);
};

std::string place_of(const ProfilePlace& place) {
  const auto text = [](const char* name) { return std::string(name == nullptr ? "-" : name); };
  return text(place.outermost) + "/" + text(place.phase) + "/" + text(place.operation);
}

std::map<std::string, ProfileSum> by_place(const ProfileTrack& track) {
  std::map<std::string, ProfileSum> sums;
  for (const ProfileSum& sum : track.sums()) sums[place_of(sum.place)] = sum;
  return sums;
}

TEST_F(ProfileTest, WithoutATrackNothingIsRecorded) {
  Context context = Context::cpu(1);
  ASSERT_EQ(context.profile_track(), nullptr);
  bool asked = false;
  profile_.start(kEveryStep);
  {
    const StepSpan step(context, 1);
    const PhaseSpan phase(context, "forward");
    const OperationSpan span(context, "product", [&] {
      asked = true;
      return Work();
    });
  }
  EXPECT_FALSE(asked);
  EXPECT_EQ(profile_.steps(), 0);
  EXPECT_TRUE(main().sums().empty());
  EXPECT_TRUE(main().events().empty());
}

TEST_F(ProfileTest, TimeIsCountedOnce) {
  profile_.start(kEveryStep);
  step(1);
  step(2);
  profile_.stop();
  const auto sums = by_place(main());
  ASSERT_EQ(sums.size(), 4u);
  const ProfileSum& product = sums.at("step/forward/product");
  EXPECT_EQ(product.calls, 2);
  EXPECT_EQ(product.work.flops, 20);
  EXPECT_EQ(product.work.bytes, 6);
  EXPECT_GE(product.seconds, 0.004);
  EXPECT_EQ(sums.at("step/forward/-").calls, 2);
  EXPECT_EQ(sums.at("step/step/norm").calls, 2);
  EXPECT_EQ(sums.at("step/step/-").calls, 2);
  // The time of an operation is not part of the phase's own time: the sums are the whole.
  double whole = 0, parts = 0;
  for (const ProfileEvent& event : main().events()) {
    if (place_of(event.place) == "step/step/-") {
      whole += 1e-9 * static_cast<double>(event.end_ns - event.begin_ns);
    }
  }
  for (const auto& [place, sum] : sums) parts += sum.seconds;
  EXPECT_NEAR(parts, whole, 1e-9);
  EXPECT_EQ(profile_.steps(), 2);
  EXPECT_GE(profile_.step_seconds(), whole);
  EXPECT_GE(profile_.seconds(), profile_.step_seconds());
}

TEST_F(ProfileTest, NothingCountsBeforeTheStartOrAfterTheEnd) {
  operation("early");
  profile_.start(kEveryStep);
  operation("counted");
  profile_.stop();
  operation("late");
  const auto sums = by_place(main());
  ASSERT_EQ(sums.size(), 1u);
  EXPECT_EQ(sums.begin()->first, "-/-/counted");
}

TEST_F(ProfileTest, StepsBeforeTheFirstThatCountsAreLeftOut) {
  profile_.start({.first_counted_step = 2, .first_traced_step = 3, .traced_steps = 1});
  for (int64_t number = 1; number <= 4; ++number) step(number);
  {
    const PhaseSpan phase(context_, "evaluation");
    operation("product");
  }
  profile_.stop();
  EXPECT_EQ(profile_.steps(), 3);
  const auto sums = by_place(main());
  EXPECT_EQ(sums.at("step/forward/product").calls, 3);
  EXPECT_EQ(sums.at("evaluation/evaluation/product").calls, 1);
  std::vector<std::string> traced;
  for (const ProfileEvent& event : main().events()) traced.push_back(place_of(event.place));
  EXPECT_THAT(traced, ElementsAre("step/forward/product", "step/forward/-", "step/step/norm",
                                  "step/step/-"));
}

TEST_F(ProfileTest, EventsLieWithinThoseAroundThem) {
  profile_.start(kEveryStep);
  step(1);
  const std::vector<ProfileEvent> events = main().events();
  ASSERT_EQ(events.size(), 4u);
  const ProfileEvent &product = events[0], &forward = events[1], &norm = events[2],
                     &whole = events[3];
  EXPECT_LE(0, whole.begin_ns);
  EXPECT_LE(whole.begin_ns, forward.begin_ns);
  EXPECT_LE(forward.begin_ns, product.begin_ns);
  EXPECT_LE(product.begin_ns + 2000000, product.end_ns);
  EXPECT_LE(product.end_ns, forward.end_ns);
  EXPECT_LE(forward.end_ns, norm.begin_ns);
  EXPECT_LE(norm.end_ns, whole.end_ns);
}

TEST_F(ProfileTest, UsesOfAnOperationHaveRowsOfTheirOwn) {
  profile_.start(kEveryStep);
  operation("product", {.flops = 1, .use = "forward", .in = 2, .out = 3});
  operation("product", {.flops = 1, .use = "forward", .in = 2, .out = 4});
  operation("product", {.flops = 1, .use = "backward", .in = 2, .out = 3});
  operation("product", {.flops = 5, .use = "backward", .in = 2, .out = 3});
  std::vector<double> flops;
  for (const ProfileSum& sum : main().sums()) flops.push_back(sum.work.flops);
  std::sort(flops.begin(), flops.end());
  EXPECT_THAT(flops, ElementsAre(1, 1, 6));
}

TEST_F(ProfileTest, ThreadsHaveTracksAndBuckets) {
  profile_.start(kEveryStep);
  profile_.begin_step(1);
  std::thread([&] {
    const PhaseSpan phase(&profile_.track("exchange"), "exchange pack", 7);
  }).join();
  ASSERT_EQ(profile_.tracks().size(), 2u);
  EXPECT_EQ(&profile_.track("exchange"), profile_.tracks()[1]);
  EXPECT_TRUE(main().events().empty());
  const std::vector<ProfileEvent> events = profile_.track("exchange").events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].bucket, 7);
  EXPECT_EQ(place_of(events[0].place), "exchange pack/exchange pack/-");
}

TEST_F(ProfileTest, TheTraceIsBoundedAndTheSumsAreNot) {
  profile_.start(kEveryStep);
  profile_.begin_step(1);
  const auto most = static_cast<int64_t>(ProfileTrack::kMaxEvents);
  for (int64_t i = 0; i < most + 10; ++i) const PhaseSpan phase(context_, "short");
  EXPECT_EQ(static_cast<int64_t>(main().events().size()), most);
  EXPECT_EQ(main().dropped_events(), 10);
  EXPECT_EQ(main().sums().at(0).calls, most + 10);
}

}  // namespace
}  // namespace onebit
