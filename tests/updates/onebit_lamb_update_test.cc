#include "onebit/math/updates/onebit_lamb_update.h"

#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <vector>

#include "tests/ops/mirror.h"
#include "tests/updates/update_values.h"

namespace onebit::updates {
namespace {

// Shorter than a vector and than a block, whole blocks, one more, beginning anywhere.
std::vector<LambTensor> tensors() {
  std::vector<LambTensor> all;
  int64_t begin = 0, block = 0;
  for (const int64_t size : {7, 2048, 1, 2049, 5000, 33, 4096, 999}) {
    const double decay = all.size() % 2 == 0 ? 0 : 0.1, rate = all.size() % 3 == 0 ? 0.5 : 1;
    all.push_back({begin, begin + size, block, decay, rate});
    begin += size;
    block = all.back().end_block();
  }
  return all;
}

// Elements of the share before the share of element 0.
constexpr int64_t kBeforeShare = 5;

// Pieces of at most 1500 elements, every other one of which is owned, stored one after another
// behind three unused elements.
struct Owned {
  std::vector<LambPart> parts;
  Values momentum;
};
Owned every_other_piece(const std::vector<LambTensor>& tensors) {
  Owned owned{.parts = {}, .momentum = Values(3, 1e10f)};
  const Values all = random_values(7, 2, static_cast<size_t>(tensors.back().end), 0.5);
  int piece = 0;
  for (size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    for (int64_t at = tensors[tensor].begin; at < tensors[tensor].end; at += 1500) {
      const int64_t end = std::min(at + 1500, tensors[tensor].end);
      if (piece++ % 2 != 0) continue;
      owned.parts.push_back({.tensor = static_cast<int64_t>(tensor),
                             .begin = at,
                             .end = end,
                             .owned = static_cast<int64_t>(owned.momentum.size()),
                             .in_share = at + kBeforeShare});
      owned.momentum.insert(owned.momentum.end(), all.begin() + at, all.begin() + end);
    }
  }
  return owned;
}

class OnebitLambUpdateTest : public ops::MirrorTest {
 protected:
  std::vector<double> squares(OnebitLambSquares a) {
    std::vector<double> sums(kLambSums * a.tensors.size(), -1.0);
    ops::Mirror mirror(context());
    a.value = mirror(a.value);
    a.momentum = mirror(a.momentum);
    a.residual = mirror(a.residual);
    a.mean_residual = mirror(a.mean_residual);
    a.parts_on_device = mirror(a.parts_on_device);
    a.sums = mirror(View::of(sums.data(), {static_cast<int64_t>(a.tensors.size()), kLambSums}));
    onebit_lamb_squares(context(), a);
    mirror.bring_back();
    return sums;
  }
  void step(OnebitLambStep a) {
    ops::Mirror mirror(context());
    a.value = mirror(a.value);
    a.compute_value = mirror(a.compute_value);
    a.momentum = mirror(a.momentum);
    a.still = mirror(a.still);
    a.ratio = mirror(a.ratio);
    onebit_lamb_step(context(), a);
    mirror.bring_back();
  }
};

TEST_P(OnebitLambUpdateTest, SumsFollowTheFormula) {
  const std::vector<LambTensor> all = tensors();
  Owned owned = every_other_piece(all);
  const auto elements = static_cast<size_t>(all.back().end);
  Values value = random_values(7, 1, elements, 2);
  Values residual = random_values(7, 3, elements + kBeforeShare, 2);
  const Values mean = random_values(7, 4, owned.momentum.size(), 0.3);
  const auto part_bytes = static_cast<int64_t>(std::span(owned.parts).size_bytes());
  const ConstView parts(owned.parts.data(), DType::kU8, {part_bytes}, Device{});
  for (const bool coded : {false, true}) {
    Values new_mean = mean;
    const std::vector<double> found = squares({.value = view_of(value),
                                               .momentum = view_of(owned.momentum),
                                               .residual = coded ? view_of(residual) : View(),
                                               .mean_residual = coded ? view_of(new_mean) : View(),
                                               .sums = {},
                                               .tensors = all,
                                               .parts = owned.parts,
                                               .parts_on_device = coded ? parts : ConstView(),
                                               .momentum_factor = 3,
                                               .beta1 = 0.8,
                                               .sources = 5});
    std::vector<double> expected(kLambSums * all.size()), size(kLambSums * all.size());
    std::vector<double> expected_mean(mean.begin(), mean.end());
    for (const LambPart& part : owned.parts) {
      const auto tensor = static_cast<size_t>(part.tensor);
      for (int64_t i = part.begin; i < part.end; ++i) {
        const auto at = static_cast<size_t>(part.owned + i - part.begin);
        const double p = value[static_cast<size_t>(i)];
        const double u = 3 * double{owned.momentum[at]} + all[tensor].weight_decay * p;
        const double r = residual[static_cast<size_t>(i + kBeforeShare)];
        const double unsent = coded ? (1 - 0.8) * 3 * (r - mean[at]) : 0;
        const double terms[] = {p * p, u * u, 2 * u * unsent + unsent * unsent / 5};
        for (size_t sum = 0; sum < kLambSums; ++sum) {
          expected[kLambSums * tensor + sum] += terms[sum];
          size[kLambSums * tensor + sum] += std::abs(terms[sum]);
        }
        if (coded) expected_mean[at] = 0.8 * mean[at] + 0.2 * r;
      }
    }
    for (size_t i = 0; i < expected.size(); ++i) {
      // u is rounded to f32 before it is squared, the value is not.
      EXPECT_NEAR(found[i], expected[i], (i % kLambSums == 0 ? 1e-13 : 1e-6) * size[i]) << i;
    }
    for (size_t i = 0; i < mean.size(); ++i) EXPECT_NEAR(new_mean[i], expected_mean[i], 1e-6);
    EXPECT_EQ(expected[2 * kLambSums], 0) << "no part of one tensor should be owned here";
  }
  EXPECT_EQ(squares({.value = view_of(value),
                     .momentum = view_of(owned.momentum),
                     .residual = {},
                     .mean_residual = {},
                     .sums = {},
                     .tensors = all,
                     .parts = {}}),
            std::vector<double>(kLambSums * all.size(), 0.0));
}

TEST_P(OnebitLambUpdateTest, StepFollowsTheFormula) {
  const std::vector<LambTensor> all = tensors();
  const auto elements = static_cast<size_t>(all.back().end);
  const Values before = random_values(7, 1, elements, 2);
  Values value = before, momentum = random_values(7, 2, elements, 1);
  Values ratio = random_values(7, 3, all.size(), 4);
  std::vector<uint8_t> still((elements + 7) / 8);
  for (size_t i = 0; i < elements; i += 3) still[i / 8] = uint8_t(still[i / 8] | 1u << (i % 8));
  std::vector<bf16> copied(elements);
  OnebitLambStep args{.value = view_of(value),
                      .compute_value = View::of(copied.data(), {static_cast<int64_t>(elements)}),
                      .momentum = view_of(momentum),
                      .still = View::of(still.data(), {static_cast<int64_t>(still.size())}),
                      .ratio = view_of(ratio),
                      .tensors = all,
                      .learning_rate = 0.01,
                      .momentum_factor = 3};
  step(args);
  for (size_t tensor = 0; tensor < all.size(); ++tensor) {
    for (int64_t place = all[tensor].begin; place < all[tensor].end; ++place) {
      const auto i = static_cast<size_t>(place);
      const double update = 3.0 * momentum[i] + all[tensor].weight_decay * before[i];
      const double expected = before[i] - 0.01 * all[tensor].rate * ratio[tensor] * update;
      if (i % 3 == 0) {
        ASSERT_EQ(value[i], before[i]) << i;
      } else {
        ASSERT_NEAR(value[i], expected, 0x1p-22) << i;
      }
      ASSERT_EQ(copied[i], bf16(value[i])) << i;
    }
  }
  const Values stepped = value;
  value = before;
  args.compute_value = View();
  step(args);
  EXPECT_EQ(value, stepped);
}

TEST(OnebitLambUpdate, ThreadsChangeNothing) {
  const std::vector<LambTensor> all{{0, 300'001, 0, 0.1}, {300'001, 400'000, 147, 0}};
  Values value = random_values(7, 1, 400'000, 1), momentum = random_values(7, 2, 400'000, 1);
  std::vector<LambPart> parts;
  for (const auto& [tensor, first, last] :
       {std::tuple(0, 0, 300'001), std::tuple(1, 300'001, 400'000)}) {
    for (int64_t at = first; at < last; at += 2048) {
      parts.push_back({tensor, at, std::min<int64_t>(at + 2048, last), at, at});
    }
  }
  Values residual = random_values(7, 3, 400'000, 1);
  const auto squares_on = [&](int threads) {
    std::vector<double> sums(2 * kLambSums);
    Values mean(400'000);
    Context context = Context::cpu(threads);
    onebit_lamb_squares(context, {.value = view_of(value),
                                  .momentum = view_of(momentum),
                                  .residual = view_of(residual),
                                  .mean_residual = view_of(mean),
                                  .sums = View::of(sums.data(), {2, kLambSums}),
                                  .tensors = all,
                                  .parts = parts,
                                  .beta1 = 0.9,
                                  .sources = 2});
    return std::pair(sums, mean);
  };
  for (const int threads : {2, 3, 4}) EXPECT_EQ(squares_on(threads), squares_on(1));
}

ONEBIT_ON_EVERY_DEVICE(OnebitLambUpdateTest);

}  // namespace
}  // namespace onebit::updates
