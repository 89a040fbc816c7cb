// The whole of 0/1 Adam at four ranks against its restatement: warm-up, updates of the variance,
// one-bit updates, local updates and synchronizations.
#include <gtest/gtest.h>

#include <cmath>

#include "onebit/exchange/one_bit/zero_one_adam.h"
#include "tests/one_bit/restatement.h"

namespace onebit::optim {
namespace {

constexpr ZeroOneOptions kSchedule{
    .variance_freeze = 25, .variance_scaler = 6, .local_scaler = 8, .local_limit = 4};
// As docs/optimizers.md has it. Averages: 6 dense ones, in even updates for 6 more, in multiples of
// 4. Then exchanges: in each of 8 updates, in even ones of 8, in multiples of 4.
const std::string kUpdates =
    "DDDDDD"
    "1R1R1R1R1R1R"
    "1R111R1"
    "SSSSSSSS"
    "SLSLSLSL"
    "LLSLLLSLLLSLLLSLLLSLL";

class ZeroOneRestatement : public Restatement {
 public:
  explicit ZeroOneRestatement(const TrialElements& elements)
      : Restatement(elements, kSchedule.variance_scaler),
        sums_(kWorld, std::vector<float>(elements.values.size())) {}

  void step(int64_t number) {
    count_update();
    const char kind = kUpdates[static_cast<size_t>(number - 1)];
    if (kind == 'D') warm_up(number);
    if (number == freeze_) freeze();
    if (kind == 'R') refresh(number);
    if (kind == '1') one_bit(number);
    if (kind == 'L') local(number);
    if (kind == 'S') synchronize(number);
  }

  int64_t local_updates() const { return local_updates_; }
  const Doubles& own_values(int rank) const {
    return local_updates_ == 0 ? values_ : own_values_[static_cast<size_t>(rank)];
  }

 private:
  using Sent = std::vector<std::vector<float>>;

  // The average replaces the ranks' own gradients.
  void refresh(int64_t number) {
    const double kept = memory();
    Sent sent(kWorld, std::vector<float>(values_.size()));
    for (int64_t i = 0; i < count_; ++i) {
      const auto at = static_cast<size_t>(i);
      if (v_[at] == 0) continue;
      const double g = mean_gradient(number, i);
      for (size_t r = 0; r < own_.size(); ++r) {
        double& variance = own_[r][at];
        variance = kept * variance + (1 - kept) * g * g;
        sent[r][at] = static_cast<float>(g / (std::sqrt(variance) + kEpsilon));
      }
    }
    exchange(sent, 1);
  }

  void one_bit(int64_t number) {
    Sent sent;
    for (int rank = 0; rank < kWorld; ++rank) sent.push_back(normalize(rank, number, memory()));
    exchange(sent, 1);
    follow_level(memory());
  }

  void local(int64_t number) {
    if (local_updates_ == 0) {
      own_values_.assign(kWorld, values_);
      own_momenta_.assign(kWorld, m_);
    }
    for (int rank = 0; rank < kWorld; ++rank) {
      const auto r = static_cast<size_t>(rank);
      const std::vector<float> y = normalize(rank, number, memory());
      for (size_t i = 0; i < y.size(); ++i) {
        sums_[r][i] += y[i];
        double& m = own_momenta_[r][i];
        m = 0.9 * m + 0.1 * double{y[i]};
        if (v_[i] != 0) own_values_[r][i] -= kRate * update_of(m, i, own_values_[r]);
      }
    }
    ++level_updates_;
    ++local_updates_;
  }

  void synchronize(int64_t number) {
    Sent sent;
    for (int rank = 0; rank < kWorld; ++rank) {
      sent.push_back(normalize(rank, number, memory()));
      std::vector<float>& sum = sums_[static_cast<size_t>(rank)];
      for (size_t i = 0; i < sum.size(); ++i) {
        sent.back()[i] += sum[i];
        sum[i] = 0;
      }
    }
    exchange(sent, static_cast<int>(local_updates_ + 1));
    follow_level(memory());
    local_updates_ = 0;
  }

  // The owners' residuals move values in all updates that an exchange sends.
  void exchange(const Sent& sent, int updates) {
    for (float& owed : all_reduce_.server) owed *= static_cast<float>(last_sent_) / updates;
    last_sent_ = updates;
    const std::vector<float> arrived = all_reduce_.run(sent, still_, 0.9f, updates);
    m_.assign(arrived.begin(), arrived.end());
    apply(m_, m_, updates * kRate);
  }

  int64_t local_updates_ = 0;
  int last_sent_ = 1;
  Sent sums_;
  std::vector<Doubles> own_values_, own_momenta_;
};

struct RankValues {
  std::vector<float> common, own;
};

void expect_restatement(int64_t steps) {
  const TrialOptions options{
      .optimizer = zero_one_adam_recipe(
          {.adam = {.weight_decay = Restatement::kDecay}, .schedule = kSchedule})};
  const auto found = on_ranks(Restatement::kWorld, options, [&](Trial& trial) {
    trial.steps(static_cast<int>(steps));
    return RankValues{.common = trial.common_values(), .own = trial.values()};
  });
  const TrialElements elements = TrialElements::of(options, false);
  ZeroOneRestatement expected(elements);
  for (int64_t step = 1; step <= steps; ++step) expected.step(step);
  for (int rank = 0; rank < Restatement::kWorld; ++rank) {
    const RankValues& values = found[static_cast<size_t>(rank)];
    expect_close(elements, expected.values(), values.common, 0.02);
    expect_close(elements, expected.own_values(rank), values.own, 0.02);
    EXPECT_EQ(expected.local_updates() > 0, values.common != values.own);
  }
}

TEST(ZeroOneReference, FollowsTheRestatementThroughTheUpdatesOfTheVariance) {
  for (const int64_t steps : {6, 7, 8, 18, 25}) expect_restatement(steps);
}

TEST(ZeroOneReference, FollowsTheRestatementThroughLocalUpdates) {
  for (const int64_t steps : {33, 42, 47, 60}) expect_restatement(steps);
  expect_restatement(static_cast<int64_t>(kUpdates.size()));
}

}  // namespace
}  // namespace onebit::optim
