#include "onebit/training/training/best_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "onebit/ground/base/json.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit::training {
namespace {

KeptModel kept_at(int64_t step, double f1) {
  return {.step = step, .record = {{"exact", 40.0}, {"f1", f1}, {"questions", 7, true}}};
}

void write_evaluation(const Path& folder, const KeptModel& kept) {
  write_file_atomically(folder / "evaluation.json", to_json(kept).dump());
}

TEST(KeptBy, IsTheFirstMetricOrTheRequestedOne) {
  constexpr metrics::MetricName kNames[] = {{"f1"}, {"loss", true}};
  EXPECT_EQ(find_kept_by(kNames, "")->metric, "f1");
  EXPECT_EQ(find_kept_by(kNames, "loss")->metric, "loss");
  EXPECT_TRUE(find_kept_by(kNames, "loss")->smaller_is_better);
  EXPECT_FALSE(find_kept_by(kNames, "accuracy").has_value());
}

TEST(KeptModel, IsTheSameAfterAFile) {
  const Json json = to_json(kept_at(12, 50.25));
  EXPECT_EQ(json.dump(), R"({"step":12,"exact":40.0,"f1":50.25,"questions":7})");
  const KeptModel again = kept_model_from(JsonReader(json, "file", ""));
  EXPECT_EQ(to_json(again).dump(), json.dump());
  EXPECT_NE(message_of([] {
              kept_model_from(JsonReader(Json{{"step", 1}, {"f1", "high"}}, "file", ""));
            }).find("f1"),
            std::string::npos);
}

TEST(KeptModel, AMetricThatWasNoNumberStaysSo) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Json file = parse_json(to_json(kept_at(3, nan)).dump(), "file");
  EXPECT_TRUE(
      std::isnan(metrics::value_of(kept_model_from(JsonReader(file, "f", "")).record, "f1")));
}

TEST(BestModel, IsTheOneWithTheSmallestErrorOnRequest) {
  BestModel best("/nowhere", {.metric = "f1", .smaller_is_better = true});
  best.set(kept_at(1, 50));
  EXPECT_FALSE(best.is_better(kept_at(2, 50).record));
  EXPECT_TRUE(best.is_better(kept_at(2, 49.5).record));
  EXPECT_FALSE(best.is_better(kept_at(2, std::numeric_limits<double>::quiet_NaN()).record));
}

TEST(BestModel, IsTheOneWithTheLargestMetric) {
  BestModel best("/nowhere", {"f1"});
  EXPECT_TRUE(best.is_better(kept_at(1, 0).record));
  best.set(kept_at(1, 50));
  EXPECT_FALSE(best.is_better(kept_at(2, 50).record));
  EXPECT_TRUE(best.is_better(kept_at(2, 50.5).record));
  EXPECT_FALSE(best.is_better(kept_at(2, std::numeric_limits<double>::quiet_NaN()).record));
}

TEST(BestModel, IsNoneWithoutAValue) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  BestModel best("/nowhere", {"f1"});
  EXPECT_FALSE(best.is_better(kept_at(1, nan).record));
  best.set(kept_at(1, nan));  // of a file of an earlier version
  EXPECT_FALSE(best.is_better(kept_at(2, nan).record));
  EXPECT_TRUE(best.is_better(kept_at(2, 0).record));
}

TEST(BestModel, ContinuesFromTheFolder) {
  const TemporaryFolder folder;
  const Json state = {{"best", to_json(kept_at(10, 50))}};
  BestModel best(folder.path(), {"f1"});
  EXPECT_FALSE(best.resume(Json::object(), 10).has_value());
  EXPECT_FALSE(best.best().has_value()) << "there was none";
  EXPECT_NE(best.resume(state, 10).value_or("").find("interrupted"), std::string::npos);
  EXPECT_FALSE(best.best().has_value()) << "the folder has none";
  write_evaluation(folder.path(), kept_at(12, 55));
  EXPECT_FALSE(best.resume(state, 12).has_value());
  EXPECT_EQ(best.best()->step, 12) << "kept before the checkpoint was made again";
  // A run that goes on as before makes it again. Another one does not.
  EXPECT_NE(best.resume(state, 11).value_or("").find("step 12, which comes after"),
            std::string::npos);
  EXPECT_FALSE(best.best().has_value()) << "made after the checkpoint";
  EXPECT_NE(best.resume(state, 20).value_or("").find("was not the best"), std::string::npos);
  EXPECT_FALSE(best.best().has_value()) << "of steps that were taken back";
  EXPECT_TRUE(best.resume(Json::object(), 20).has_value());
  EXPECT_FALSE(best.best().has_value()) << "of steps that were taken back";
  write_evaluation(folder.path(), kept_at(10, 50));
  EXPECT_FALSE(best.resume(state, 20).has_value());
  EXPECT_EQ(best.best()->step, 10);
  best.forget();
  EXPECT_FALSE(best.best().has_value());
}

}  // namespace
}  // namespace onebit::training
