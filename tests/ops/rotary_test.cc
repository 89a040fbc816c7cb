#include "onebit/math/ops/rotary.h"

#include "tests/base/message_of.h"
#include "tests/ops/backend_test.h"
#include "tests/reference/rotary.h"

namespace onebit::ops {
namespace {

using reference::Matrix;

struct Size {
  std::vector<int32_t> lengths;  // of packed sequences, whose positions restart
  int64_t heads, head_size;
  double theta;
};

const std::vector<Size>& sizes() {
  static const std::vector<Size> all = {{{1}, 1, 2, 10000},
                                        {{17, 1, 60}, 3, 12, 10000},
                                        {{40, 3}, 4, 64, 160000},
                                        {{5, 5}, 2, 22, 1000},
                                        {{300}, 1, 128, 10000}};
  return all;
}

class RotaryTest : public BackendTest {
 protected:
  static std::vector<int32_t> positions_of(const Size& size) {
    std::vector<int32_t> positions;
    for (const int32_t length : size.lengths) {
      for (int32_t i = 0; i < length; ++i) positions.push_back(i);
    }
    return positions;
  }

  void run(const Size& size, const Tensor& qkv, bool back = false) {
    const std::vector<int32_t> positions = positions_of(size);
    const Tensor on_positions = upload_values(positions, {static_cast<int64_t>(positions.size())});
    const Tensor turns = rotary_turns(context().device(), size.theta, 512, size.head_size);
    rotary(context(), {.positions = on_positions.view(),
                       .turns = turns.view(),
                       .heads = size.heads,
                       .back = back,
                       .qkv = qkv.view()});
  }
};

// An angle of up to 300 is rounded twice to f32, and what it turns is up to 2.8 long. The products
// add two roundings.
constexpr double kError = 2.9 * (300 * 2 * 0x1p-24) + 8 * 0x1p-24;

TEST_P(RotaryTest, ForwardAndBackward) {
  for (const Size& size : sizes()) {
    const std::vector<int32_t> positions = positions_of(size);
    const int64_t rows = static_cast<int64_t>(positions.size());
    SCOPED_TRACE(testing::Message() << rows << " rows, " << size.heads << " x " << size.head_size);
    const Matrix qkv = random(rows, 3 * size.heads * size.head_size, 1);
    const Tensor turned = upload(qkv), back = upload(qkv);
    run(size, turned);
    expect_near(turned, reference::rotary(qkv, positions, size.heads, size.theta), epsilon(),
                kError, "turned");
    // The transposed matrix of a turn is the turn back.
    run(size, back, true);
    expect_near(back, reference::rotary(qkv, positions, size.heads, size.theta, -1), epsilon(),
                kError, "turned back");
    run(size, turned, true);
    expect_near(turned, qkv, 2 * epsilon(), 4 * epsilon() + 0x1p-20, "turned there and back");
  }
}

// Neighbours at the same distance have the same score, wherever they are.
TEST_P(RotaryTest, ScoresDependOnDistances) {
  if (dtype() != DType::kF32) GTEST_SKIP() << "about f32";
  const Size size{{40}, 1, 16, 10000};
  Matrix qkv(40, 48);
  const Matrix one = random(1, 48, 1);
  for (int64_t row = 0; row < 40; ++row) {
    for (int64_t j = 0; j < 48; ++j) qkv(row, j) = one(0, j);
  }
  const Tensor on_qkv = upload(qkv);
  run(size, on_qkv);
  const Tensor host = to_cpu_f32(on_qkv.view());
  const auto score = [&](int64_t query, int64_t key) {
    double sum = 0;
    for (int64_t j = 0; j < 16; ++j) {
      sum += double{host.data<float>()[query * 48 + j]} * host.data<float>()[key * 48 + 16 + j];
    }
    return sum;
  };
  for (int64_t first = 1; first + 7 < 40; ++first) {
    EXPECT_NEAR(score(first, first + 7), score(0, 7), 16 * 4 * 40 * 0x1p-23) << first;
    EXPECT_NEAR(score(first + 7, first), score(7, 0), 16 * 4 * 40 * 0x1p-23) << first;
  }
  EXPECT_GT(std::abs(score(0, 7) - score(0, 8)), 1e-3);
}

ONEBIT_ON_EVERY_BACKEND(RotaryTest);

TEST(RotaryErrors, NameTheRow) {
  Context context = Context::cpu(1);
  const Tensor qkv = Tensor::zeros({}, DType::kF32, {3, 12});
  const Tensor turns = rotary_turns({}, 10000, 4, 4);
  const int32_t positions[] = {0, 4, 1};
  const auto run = [&](int64_t heads) {
    return message_of([&] {
      rotary(context, {.positions = ConstView::of(positions, {3}),
                       .turns = turns.view(),
                       .heads = heads,
                       .qkv = qkv.view()});
    });
  };
  EXPECT_EQ(run(1), "rotary: position 4 of row 1 is outside its table of 4");
  EXPECT_NE(run(4).find("head_size must be even"), std::string::npos);
}

}  // namespace
}  // namespace onebit::ops
