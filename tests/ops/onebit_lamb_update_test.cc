#include "onebit/ops/onebit_lamb_update.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/ops/mirror.h"
#include "tests/ops/update_values.h"

namespace onebit::ops {
namespace {

// Shorter than a vector and than a block, whole blocks, one more; beginning anywhere.
std::vector<LambTensor> tensors() {
  std::vector<LambTensor> all;
  int64_t begin = 0, block = 0;
  for (const int64_t size : {7, 2048, 1, 2049, 5000, 33, 4096, 999}) {
    all.push_back({begin, begin + size, block, all.size() % 2 == 0 ? 0 : 0.1});
    begin += size;
    block = all.back().end_block();
  }
  return all;
}

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
                             .owned = static_cast<int64_t>(owned.momentum.size())});
      owned.momentum.insert(owned.momentum.end(), all.begin() + at, all.begin() + end);
    }
  }
  return owned;
}

class OnebitLambUpdateTest : public MirrorTest {
 protected:
  std::vector<double> squares(OnebitLambSquares a) {
    std::vector<double> sums(2 * a.tensors.size(), -1.0);
    Mirror mirror(context());
    a.value = mirror(a.value);
    a.momentum = mirror(a.momentum);
    a.squares = mirror(View::of(sums.data(), {static_cast<int64_t>(a.tensors.size()), 2}));
    onebit_lamb_squares(context(), a);
    mirror.bring_back();
    return sums;
  }
  std::vector<double> residual_squares(OnebitLambResidual a) {
    std::vector<double> sums(a.tensors.size(), -1.0);
    Mirror mirror(context());
    a.residual = mirror(a.residual);
    a.squares = mirror(View::of(sums.data(), {static_cast<int64_t>(a.tensors.size())}));
    onebit_lamb_residual(context(), a);
    mirror.bring_back();
    return sums;
  }
  void step(OnebitLambStep a) {
    Mirror mirror(context());
    a.value = mirror(a.value);
    a.compute_value = mirror(a.compute_value);
    a.momentum = mirror(a.momentum);
    a.still = mirror(a.still);
    a.ratio = mirror(a.ratio);
    onebit_lamb_step(context(), a);
    mirror.bring_back();
  }
};

TEST_P(OnebitLambUpdateTest, SquaresFollowTheFormula) {
  const std::vector<LambTensor> all = tensors();
  Owned owned = every_other_piece(all);
  Values value = random_values(7, 1, static_cast<size_t>(all.back().end), 2);
  const std::vector<double> found = squares({.value = view_of(value),
                                             .momentum = view_of(owned.momentum),
                                             .squares = {},
                                             .tensors = all,
                                             .parts = owned.parts,
                                             .momentum_factor = 3});
  std::vector<double> expected(2 * all.size());
  for (const LambPart& part : owned.parts) {
    const auto tensor = static_cast<size_t>(part.tensor);
    for (int64_t i = part.begin; i < part.end; ++i) {
      const double p = value[static_cast<size_t>(i)];
      const double m = owned.momentum[static_cast<size_t>(part.owned + i - part.begin)];
      expected[2 * tensor] += p * p;
      expected[2 * tensor + 1] += std::pow(3 * m + all[tensor].weight_decay * p, 2);
    }
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    // u is rounded to f32 before it is squared, the value is not.
    EXPECT_NEAR(found[i], expected[i], (i % 2 == 0 ? 1e-13 : 1e-6) * expected[i]) << i;
  }
  EXPECT_EQ(expected[2 * 2], 0) << "no part of one tensor should be owned here";
  EXPECT_EQ(squares({.value = view_of(value),
                     .momentum = view_of(owned.momentum),
                     .squares = {},
                     .tensors = all,
                     .parts = {}}),
            std::vector<double>(2 * all.size(), 0.0));
}

TEST_P(OnebitLambUpdateTest, ResidualSquaresFollowTheFormula) {
  const std::vector<LambTensor> all = tensors();
  Owned owned = every_other_piece(all);
  const std::vector<double> found = residual_squares(
      {.residual = view_of(owned.momentum), .squares = {}, .tensors = all, .parts = owned.parts});
  std::vector<double> expected(all.size());
  for (const LambPart& part : owned.parts) {
    for (int64_t i = part.owned; i < part.owned + part.end - part.begin; ++i) {
      expected[static_cast<size_t>(part.tensor)] +=
          std::pow(double{owned.momentum[static_cast<size_t>(i)]}, 2);
    }
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-13 * expected[i]) << i;
  }
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
      const double expected = before[i] - 0.01 * ratio[tensor] * update;
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
      parts.push_back({tensor, at, std::min<int64_t>(at + 2048, last), at});
    }
  }
  const auto squares_on = [&](int threads) {
    std::vector<double> sums(4);
    Context context = Context::cpu(threads);
    onebit_lamb_squares(context, {.value = view_of(value),
                                  .momentum = view_of(momentum),
                                  .squares = View::of(sums.data(), {2, 2}),
                                  .tensors = all,
                                  .parts = parts});
    return sums;
  };
  for (const int threads : {2, 3, 4}) EXPECT_EQ(squares_on(threads), squares_on(1));
}

ONEBIT_ON_EVERY_DEVICE(OnebitLambUpdateTest);

}  // namespace
}  // namespace onebit::ops
