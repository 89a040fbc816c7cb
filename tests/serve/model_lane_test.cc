#include "onebit/program/serve/model_lane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "onebit/ground/base/error.h"
#include "onebit/program/serve/api_error.h"

namespace onebit::serve {
namespace {

std::shared_ptr<Work> lane_work(std::vector<int64_t> tokens) {
  return std::make_shared<Work>(std::move(tokens));
}

constexpr QueueLimits kLimits = {.batch_tokens = 100, .batch_parts = 8, .requests = 2};

// A door that a computation waits at.
class Door {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    is_reached_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return is_open_; });
  }
  void wait_until_reached() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_reached_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = false, is_reached_ = false;
};

// The error of a run, "gone", or "".
std::string error_of(ModelLane& lane, const std::shared_ptr<Work>& work,
                     const HttpRequest& request = {}) {
  CallFigures figures;
  try {
    lane.run(work, request, figures);
  } catch (const ApiError& error) {
    return std::string(name_of(error.kind())) + ": " + error.what();
  } catch (const ClientGone&) {
    return "gone";
  }
  return "";
}

TEST(ModelLane, ComputesEveryPart) {
  std::vector<size_t> computed;
  Metrics metrics;
  ModelLane lane(kLimits, 1, metrics, [&](std::span<const Part> parts) {
    for (const Part& part : parts) computed.push_back(part.index);
  });
  CallFigures figures;
  lane.run(lane_work({40, 40, 40}), {}, figures);
  EXPECT_THAT(computed, testing::ElementsAre(0, 1, 2));
  EXPECT_GE(figures.inference_seconds, 0);
  EXPECT_THAT(metrics.text(0), testing::HasSubstr("te_batch_next_tokens_sum 120\n"));
  EXPECT_EQ(lane.requests(), 0);
}

TEST(ModelLane, OnlyTheRequestThatFailsFails) {
  Door door;
  Metrics metrics;
  const auto wrong = lane_work({10}), right = lane_work({10}), first = lane_work({100});
  ModelLane lane({.batch_tokens = 100, .batch_parts = 8, .requests = 8}, 1, metrics,
                 [&](std::span<const Part> parts) {
                   for (const Part& part : parts) {
                     if (part.work == first) door.pass();
                     if (part.work == wrong) fail("broken");
                   }
                 });
  // Both come into one batch, because the lane is busy with another one.
  std::vector<std::thread> clients;
  clients.emplace_back([&] { EXPECT_EQ(error_of(lane, first), ""); });
  door.wait_until_reached();
  clients.emplace_back([&] { EXPECT_EQ(error_of(lane, wrong), "Backend: broken"); });
  clients.emplace_back([&] { EXPECT_EQ(error_of(lane, right), ""); });
  while (lane.requests() < 3) std::this_thread::yield();
  door.open();
  for (std::thread& client : clients) client.join();
}

TEST(ModelLane, RefusesMoreThanMayWait) {
  Door door;
  Metrics metrics;
  ModelLane lane(kLimits, 1, metrics, [&](std::span<const Part>) { door.pass(); });
  std::vector<std::thread> clients;
  for (int i = 0; i < 2; ++i) {
    clients.emplace_back([&] { EXPECT_EQ(error_of(lane, lane_work({10})), ""); });
  }
  while (lane.requests() < 2) std::this_thread::yield();
  EXPECT_EQ(error_of(lane, lane_work({10})),
            "Overloaded: the model is overloaded: 2 requests wait (--max-waiting)");
  door.open();
  for (std::thread& client : clients) client.join();
}

TEST(ModelLane, LeavesOutWhatNobodyWaitsFor) {
  Door door;
  std::atomic<int> computed = 0;
  Metrics metrics;
  ModelLane lane({.batch_tokens = 100, .batch_parts = 8, .requests = 8}, 1, metrics,
                 [&](std::span<const Part>) {
                   ++computed;
                   door.pass();
                 });
  std::thread first([&] { EXPECT_EQ(error_of(lane, lane_work({100})), ""); });
  door.wait_until_reached();
  HttpRequest request;
  request.is_gone = [] { return true; };
  EXPECT_EQ(error_of(lane, lane_work({100, 100}), request), "gone");
  EXPECT_EQ(lane.requests(), 1);
  door.open();
  first.join();
  EXPECT_EQ(error_of(lane, lane_work({100})), "");
  EXPECT_EQ(computed, 2);
}

TEST(ModelLane, RefusesWorkAfterClose) {
  Metrics metrics;
  ModelLane lane(kLimits, 1, metrics, [](std::span<const Part>) {});
  lane.close();
  EXPECT_EQ(error_of(lane, lane_work({10})), "Unhealthy: the server is about to end");
}

}  // namespace
}  // namespace onebit::serve
