#include "tests/muon/muon.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/exchange/one_bit/onebit_adam.h"
#include "onebit/exchange/optim/adam.h"

namespace onebit::muon {
namespace {

constexpr const char* kMatrix = "bert.encoder.layer.0.output.dense.weight";
constexpr int64_t kRows = 64, kColumns = 32;
constexpr double kRate = 0.01, kDecay = 0.1;

// One rank with a matrix of a layer and another matrix.
class Rank {
 public:
  Rank(comm::Communicator& communicator, const optim::OptimizerRecipe& others, Sends sends)
      : rank_(communicator.rank()), ranks_(communicator.world_size()), context_(Context::cpu(1)) {
    table_.add({.name = kMatrix, .shape = {kRows, kColumns}, .decay = true});
    table_.add({.name = "bert.embeddings.weight", .shape = {40, 16}, .decay = true});
    table_.allocate(Device{}, DType::kF32);
    for (int64_t i = 0; i < table_.size_elements(); ++i) {
      table_.values().data<float>()[i] = std::cos(static_cast<float>(i));
    }
    muon_ = std::make_unique<Muon>(MuonOptions{.weight_decay = kDecay, .sends = sends},
                                   others.make(table_, communicator, {}), table_, communicator);
  }

  // A constant mean plus noise of each rank.
  float gradient(int rank, int64_t step, int64_t i) const {
    const auto at = static_cast<double>(i);
    const double noise = std::sin(at * static_cast<double>(7 * step + rank + 1));
    return static_cast<float>(std::sin(0.37 * at * at) + 0.3 * noise);
  }

  void step(int64_t number) {
    const bool averaged = muon_->gradient_need() == optim::GradientNeed::kAveragedOverRanks;
    float* const gradients = table_.gradients().data<float>();
    for (int64_t i = 0; i < table_.size_elements(); ++i) {
      gradients[i] = averaged ? 0 : gradient(rank_, number, i);
      for (int rank = 0; averaged && rank < ranks_; ++rank) {
        gradients[i] += gradient(rank, number, i) / static_cast<float>(ranks_);
      }
    }
    muon_->step(context_, table_, {.step = number, .learning_rate = kRate});
  }

  std::vector<float> values() const {
    const float* const first = table_.values().data<float>();
    return {first, first + table_.size_elements()};
  }
  std::vector<float> matrix() const {
    const float* const first = table_.value_of(table_.entry(kMatrix)).data<float>();
    return {first, first + kRows * kColumns};
  }
  Context& context() { return context_; }
  Muon& muon() { return *muon_; }

 private:
  int rank_, ranks_;
  Context context_;
  ParameterTable table_;
  std::unique_ptr<Muon> muon_;
};

TEST(Muon, DenseStepsFollowTheirFormula) {
  comm::run_thread_world(1, [](comm::Communicator& communicator) {
    Rank rank(communicator, *optim::adam_recipe({}), Sends::kUpdate);
    EXPECT_EQ(rank.muon().names(), std::vector<std::string>{kMatrix});
    std::vector<double> momentum(kRows * kColumns);
    for (int64_t step = 1; step <= 3; ++step) {
      const std::vector<float> before = rank.matrix();
      Tensor expected(Device{}, DType::kF32, {kRows, kColumns});
      for (size_t i = 0; i < momentum.size(); ++i) {
        const double g = rank.gradient(0, step, static_cast<int64_t>(i));
        momentum[i] = 0.95 * momentum[i] + 0.05 * g;
        expected.data<float>()[i] = static_cast<float>(0.05 * g + 0.95 * momentum[i]);
      }
      NewtonSchulz(kRows, kColumns).run(rank.context(), expected.view());
      rank.step(step);
      for (size_t i = 0; i < momentum.size(); ++i) {
        const double moved = 0.2 * std::sqrt(64.0) * expected.data<float>()[i] + kDecay * before[i];
        ASSERT_NEAR(rank.matrix()[i], before[i] - kRate * moved, 1e-5) << "element " << i;
      }
    }
  });
}

// In f64, how far `a` and `b` have moved from `start` in the same direction: their cosine.
double cosine(const std::vector<float>& start, const std::vector<float>& a,
              const std::vector<float>& b) {
  double product = 0, square_a = 0, square_b = 0;
  for (size_t i = 0; i < start.size(); ++i) {
    const double by_a = double{a[i]} - start[i], by_b = double{b[i]} - start[i];
    product += by_a * by_b;
    square_a += by_a * by_a;
    square_b += by_b * by_b;
  }
  return product / std::sqrt(square_a * square_b);
}

// Returns the values after `updates`, two of them dense, which are equal on both ranks.
std::vector<float> after(const optim::OptimizerRecipe& others, Sends sends, int64_t updates) {
  std::vector<std::vector<float>> ends(2), matrices(2);
  comm::run_thread_world(2, [&](comm::Communicator& communicator) {
    Rank rank(communicator, others, sends);
    for (int64_t step = 1; step <= updates; ++step) rank.step(step);
    const auto self = static_cast<size_t>(communicator.rank());
    ends[self] = rank.values();
    matrices[self] = rank.matrix();
  });
  EXPECT_EQ(ends[0], ends[1]);
  return matrices[0];
}

TEST(Muon, AtOneBitRanksStayEqualAndMoveAsTheDenseOnes) {
  const auto dense = optim::adam_recipe({});
  const auto compressed = optim::onebit_adam_recipe({.freeze = {.step = 2}});
  const std::vector<float> start = after(*dense, Sends::kUpdate, 0);
  const std::vector<float> exact = after(*dense, Sends::kUpdate, 40);
  const double by_update = cosine(start, after(*compressed, Sends::kUpdate, 40), exact);
  const double by_momentum = cosine(start, after(*compressed, Sends::kMomentum, 40), exact);
  const double whitened = cosine(start, after(*compressed, Sends::kWhitened, 40), exact);
  EXPECT_GT(whitened, 0.95);
  EXPECT_GT(by_update, 0.9);
  EXPECT_GT(by_momentum, 0.7);
  EXPECT_GT(by_update, by_momentum);
}

}  // namespace
}  // namespace onebit::muon
