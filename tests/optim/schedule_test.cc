// Golden values: DeepSpeed's formulas and the formulas of its BERT example, in double precision.
#include "onebit/exchange/optim/schedule.h"
#include "onebit/ground/base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace onebit::optim {
namespace {

std::unique_ptr<Schedule> schedule_from(const char* text, double base_rate = 1e-3,
                                        int64_t total = 0) {
  const Keys keys(parse_json(text, "test"), "test", "scheduler");
  const ScheduleOptions options = read_schedule(keys, base_rate, total);
  keys.check();
  std::vector<std::string> warnings;
  return options.make(total, warnings);
}

struct Golden {
  int64_t t;  // DeepSpeed's index, for update t + 2
  double rate;
  double beta1 = 0;
};

// The printed goldens have nine significant digits.
void expect_rates(const Schedule& schedule, const std::vector<Golden>& goldens) {
  for (const auto& [t, rate, beta1] : goldens) {
    const Rate found = schedule.at(t + 2);
    EXPECT_NEAR(found.learning_rate, rate, 1e-8 * std::max(rate, 1e-3)) << "t = " << t;
    EXPECT_EQ(found.beta1.has_value(), beta1 != 0) << "t = " << t;
    EXPECT_NEAR(found.beta1.value_or(0), beta1, 1e-9) << "t = " << t;
  }
}

// x is the number of completed updates.
void expect_factors(const Schedule& schedule, const std::vector<std::pair<int64_t, double>>& all) {
  for (const auto& [completed, rate] : all) {
    EXPECT_NEAR(schedule.at(completed + 1).learning_rate, rate, 1e-8 * std::max(rate, 1e-3))
        << "after " << completed;
  }
}

TEST(Schedule, RangeTest) {
  const auto smooth = schedule_from(R"({"type": "LRRangeTest", "params": {
      "lr_range_test_min_lr": 1e-4, "lr_range_test_step_size": 5,
      "lr_range_test_step_rate": 0.5}})");
  expect_rates(*smooth,
               {{-1, 1e-4}, {0, 1.1e-4}, {1, 1.2e-4}, {4, 1.5e-4}, {5, 1.6e-4}, {9, 2e-4}});
  const auto stairs = schedule_from(R"({"type": "LRRangeTest", "params": {
      "lr_range_test_min_lr": [1e-4, 1e-4], "lr_range_test_step_size": 5,
      "lr_range_test_step_rate": 0.5, "lr_range_test_staircase": true}})");
  expect_rates(*stairs, {{0, 1e-4}, {3, 1e-4}, {4, 1.5e-4}, {8, 1.5e-4}, {9, 2e-4}});
}

TEST(Schedule, OneCycle) {
  const auto cycle = schedule_from(R"({"type": "OneCycle", "params": {
      "cycle_min_lr": 1e-3, "cycle_max_lr": 1e-2, "cycle_first_step_size": 4,
      "decay_lr_rate": 0.1, "decay_step_size": 2, "cycle_min_mom": 0.8, "cycle_max_mom": 0.9,
      "decay_mom_rate": 0.05}})");
  expect_rates(*cycle, {{-1, 1e-3, 0.8},
                        {0, 0.00325, 0.875},
                        {1, 0.0055, 0.85},
                        {2, 0.00775, 0.825},
                        {3, 0.01, 0.8},
                        {4, 0.00775, 0.825},
                        {5, 0.0055, 0.85},
                        {6, 0.00325, 0.875},
                        {7, 0.001, 0.9},
                        {8, 9.52380952e-4, 0.9225},
                        {9, 9.09090909e-4, 0.945},
                        {10, 8.69565217e-4, 0.9675},
                        {11, 8.33333333e-4, 0.99}});
  EXPECT_LT(cycle->at(1000).beta1.value(), 1.0);
  EXPECT_EQ(cycle->warmup_updates(), 5);
  const auto skewed = schedule_from(R"({"type": "OneCycle", "params": {
      "cycle_min_lr": 1e-3, "cycle_max_lr": 1e-2, "cycle_first_step_size": 2,
      "cycle_second_step_size": 4}})");
  expect_rates(*skewed, {{0, 0.0055, 0.85},
                         {1, 0.01, 0.8},
                         {2, 0.00775, 0.825},
                         {3, 0.0055, 0.85},
                         {4, 0.00325, 0.875},
                         {5, 0.001, 0.9}});
}

TEST(Schedule, Warmup) {
  const auto logarithmic = schedule_from(
      R"({"type": "WarmupLR", "params": {"warmup_max_lr": 1e-3, "warmup_num_steps": 10}})");
  expect_rates(*logarithmic, {{-1, 0},
                              {0, 0},
                              {1, 3.01029996e-4},
                              {4, 6.98970004e-4},
                              {8, 9.54242509e-4},
                              {9, 1e-3},
                              {10, 1e-3}});
  const auto linear = schedule_from(R"({"type": "WarmupLR", "params": {"warmup_min_lr": 1e-5,
      "warmup_max_lr": 1e-3, "warmup_num_steps": 10, "warmup_type": "linear"}})");
  expect_rates(*linear, {{0, 1e-5}, {1, 1.09e-4}, {5, 5.05e-4}, {9, 9.01e-4}, {10, 1e-3}});
  // No update after the warm-up has a rising rate.
  for (const Schedule* one : {logarithmic.get(), linear.get()}) {
    const int64_t end = one->warmup_updates();
    EXPECT_EQ(one->at(end + 1).learning_rate, one->at(end + 2).learning_rate);
  }
}

TEST(Schedule, WarmupDecay) {
  const auto decay = schedule_from(R"({"type": "WarmupDecayLR", "params": {
      "warmup_max_lr": 1e-3, "warmup_num_steps": 10, "total_num_steps": 20}})");
  expect_rates(*decay,
               {{9, 1e-3}, {10, 1e-3}, {11, 9e-4}, {15, 5e-4}, {19, 1e-4}, {20, 0}, {25, 0}});
}

TEST(Schedule, WarmupCosineStaysDown) {
  const auto cosine = schedule_from(R"({"type": "WarmupCosineLR", "params": {
      "warmup_num_steps": 10, "total_num_steps": 20, "cos_min_ratio": 1e-4}})");
  expect_rates(*cosine, {{-1, 0},
                         {0, 0},
                         {1, 3.01029996e-4},
                         {5, 7.7815125e-4},
                         {9, 1e-3},
                         {10, 9.75530705e-4},
                         {11, 9.04518046e-4},
                         {14, 5.0005e-4},
                         {15, 3.45556954e-4},
                         {19, 1e-7},
                         {20, 1e-7},
                         {25, 1e-7},
                         {29, 1e-7}});
  const auto no_room = schedule_from(R"({"type": "WarmupCosineLR", "params": {
      "warmup_num_steps": 10, "total_num_steps": 10, "cos_min_ratio": 1e-4}})");
  EXPECT_TRUE(std::isfinite(no_room->at(12).learning_rate));
}

TEST(Schedule, BertExample) {
  const auto le = schedule_from(R"({"type": "LE", "params": {"total_num_steps": 125000,
      "warmup_proportion": 0.1, "decay_rate": 0.99, "decay_step": 520}})",
                                4e-4);
  expect_factors(*le, {{0, 0},
                       {1250, 4e-5},
                       {6250, 2e-4},
                       {12500, 4e-4},
                       {13020, 3.96e-4},
                       {25000, 3.14149798e-4},
                       {125000, 4.54727407e-5}});
  EXPECT_EQ(le->warmup_updates(), 12500);
  const auto ee = schedule_from(R"({"type": "EE", "params": {"total_num_steps": 7500,
      "warmup_proportion": 0.02, "decay_rate": 0.9, "decay_step": 150}})",
                                1);
  expect_factors(*ee, {{75, 0.25}, {149, 0.986711111}, {150, 1}, {300, 0.9}, {7500, 0.0057264169}});
  const auto ep = schedule_from(
      R"({"type": "EP", "params": {"total_num_steps": 1000, "warmup_proportion": 0.1}})", 1);
  expect_factors(*ep, {{50, 0.353553391}, {100, 0.81}, {500, 0.25}, {1000, 0}, {1500, 0}});
  const auto squad =
      schedule_from(R"({"type": "warmup_linear", "params": {"warmup_proportion": 0.1}})", 1, 1000);
  expect_factors(*squad, {{0, 0}, {50, 0.5}, {99, 0.99}, {100, 0.9}, {900, 0.1}, {2000, 0}});
}

TEST(Schedule, Ours) {
  const auto linear =
      schedule_from(R"({"type": "linear", "params": {"warmup_num_steps": 10}})", 1, 110);
  expect_factors(*linear, {{0, 0}, {5, 0.5}, {10, 1}, {60, 0.5}, {110, 0}, {500, 0}});
  const auto square =
      schedule_from(R"({"type": "polynomial", "params": {"power": 2, "end_ratio": 0.5}})", 1, 100);
  expect_factors(*square, {{0, 1}, {50, 0.625}, {100, 0.5}});
  std::vector<std::string> warnings;
  const auto constant = read_schedule(Keys(), 0.25, 0).make(0, warnings);
  expect_factors(*constant, {{0, 0.25}, {1000000, 0.25}});
  EXPECT_EQ(constant->warmup_updates(), 0);
}

// After the warm-up the factors are those of transformers' get_wsd_schedule() with 10, 60 and 30
// steps.
TEST(Schedule, WarmupStableDecay) {
  const std::string common =
      R"({"type": "warmup_stable_decay", "params": {"warmup_num_steps": 10, )";
  const auto root =
      schedule_from((common + R"("decay_num_steps": 30, "end_ratio": 0.1}})").c_str(), 1, 100);
  expect_factors(*root, {{0, 0},
                         {5, 0.5},
                         {10, 1},
                         {40, 1},
                         {69, 1},
                         {70, 1},
                         {71, 0.835683232748},
                         {77, 0.565258697614},
                         {85, 0.363603896932},
                         {99, 0.115127127775},
                         {100, 0.1},
                         {500, 0.1}});
  EXPECT_EQ(root->warmup_updates(), 10);
  const auto linear = schedule_from(
      (common + R"("decay_proportion": 0.3, "decay_type": "linear"}})").c_str(), 1, 100);
  expect_factors(*linear, {{69, 1}, {70, 1}, {71, 0.966666666667}, {85, 0.5}, {100, 0}, {500, 0}});
  const auto cosine = schedule_from(
      (common + R"("decay_num_steps": 30, "decay_type": "cosine", "end_ratio": 0.25}})").c_str(), 1,
      100);
  expect_factors(*cosine, {{70, 1}, {71, 0.997945710763}, {85, 0.625}, {99, 0.252054289237}});
  const auto no_decay =
      schedule_from((common + R"("decay_proportion": 0, "lr_offset": 0.5}})").c_str(), 1, 100);
  expect_factors(*no_decay, {{10, 1.5}, {99, 1.5}});
}

TEST(Schedule, ADecayThatIsTooLongIsShortened) {
  const Keys keys(parse_json(R"({"type": "warmup_stable_decay", "params": {
      "warmup_num_steps": 10, "decay_num_steps": 30}})",
                             "test"),
                  "test", "scheduler");
  const ScheduleOptions options = read_schedule(keys, 1, 20);
  keys.check();
  std::vector<std::string> warnings;
  const auto schedule = options.make(20, warnings);
  expect_factors(*schedule, {{5, 0.5}, {10, 1}, {20, 0}});
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("= 20 is less than the warm-up of 10 updates and the decay of 30"),
            std::string::npos)
      << warnings[0];
}

TEST(Schedule, StartsLater) {
  const auto plain = schedule_from(
      R"({"type": "linear", "params": {"warmup_num_steps": 10, "total_num_steps": 100}})");
  const auto later = schedule_from(R"({"type": "linear", "params": {"warmup_num_steps": 10,
      "total_num_steps": 100, "start_step": 1000}})");
  for (const int64_t update : {1, 5, 11, 60}) {
    EXPECT_EQ(later->at(update + 1000).learning_rate, plain->at(update).learning_rate);
  }
  EXPECT_EQ(later->warmup_updates(), 1010);
}

void expect_error(const char* text, const std::string& part) {
  try {
    schedule_from(text);
    ADD_FAILURE() << text << " was accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(Schedule, Errors) {
  expect_error(R"({"type": "WarmupLr"})", "WarmupLR");
  expect_error(R"({"type": "WarmupLR", "params": {"warmup_num_step": 3}})", "warmup_num_steps");
  expect_error(R"({"type": "WarmupDecayLR"})", "run.steps");
  expect_error(R"({"type": "OneCycle", "params": {"cycle_min_lr": 1}})", "cycle_max_lr");
  expect_error(R"({"type": "WarmupLR", "params": {"warmup_max_lr": [1, 2]}})",
               "a list of equal numbers: all parameters share one rate");
  expect_error(R"({"type": "WarmupLR", "params": {"warmup_max_lr": [-1e-3]}})", "of at least 0");
  expect_error(R"({"type": "WarmupLR", "params": {"warmup_type": "square"}})", "linear");
  expect_error(R"({"type": "LE", "params": {"total_num_steps": 5, "warmup_proportion": 2}})",
               "from 0 to 1");
  expect_error(R"({"type": "linear", "params": {"total_num_steps": 5, "warmup_num_steps": 1,
                   "warmup_proportion": 0.1}})",
               "and warmup_proportion are both given; keep one");
  expect_error(R"({"type": "warmup_stable_decay", "params": {"total_num_steps": 5,
                   "decay_num_steps": 1, "decay_proportion": 0.1}})",
               "and decay_proportion are both given; keep one");
  expect_error(R"({"type": "warmup_stable_decay", "params": {"decay_type": "root"}})", "1-sqrt");
  expect_error(R"({"params": {"lr": 1}})", "`scheduler.params` is not known");
}

}  // namespace
}  // namespace onebit::optim
