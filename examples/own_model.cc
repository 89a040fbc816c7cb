// Trains a model of your own with onebit's engine: a two-layer perceptron that learns whether a
// point is inside a circle, data parallel on four ranks (threads of this process), with 1-bit Adam.
// Under mpirun, transport::World provides the communicator instead of run_thread_world().
//
//   cmake --build build --target own_model && build/examples/own_model
#include <fmt/format.h>

#include <array>
#include <vector>

#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/exchange/engine/engine.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/philox.h"
#include "onebit/math/ops/activation.h"
#include "onebit/math/ops/linear.h"

using namespace onebit;

namespace {

constexpr int64_t kHidden = 64;

class Perceptron {
 public:
  explicit Perceptron(ParameterTable& table) : table_(table) {
    hidden_weight_ = table.add({.name = "hidden.weight",
                                .shape = {kHidden, 2},
                                .init = InitialValue::kNormal,
                                .init_stddev = 1.0,
                                .decay = true});
    hidden_bias_ = table.add({.name = "hidden.bias", .shape = {kHidden}});
    out_weight_ = table.add({.name = "out.weight",
                             .shape = {1, kHidden},
                             .init = InitialValue::kNormal,
                             .init_stddev = 0.1,
                             .decay = true});
    out_bias_ = table.add({.name = "out.bias", .shape = {1}});
  }

  // Points [rows, 2] and their targets, 1 or -1. Returns how many outputs have the right sign.
  int64_t forward_backward(Context& context, const std::vector<float>& points,
                           const std::vector<float>& targets, double weight,
                           const engine::BackwardInput& input) {
    const int64_t rows = static_cast<int64_t>(targets.size());
    std::vector<float> before(points.size() / 2 * kHidden), after(before.size());
    std::vector<float> grad_hidden(before.size()), guess(targets.size()), grad(targets.size());
    const ConstView x = ConstView::of(points.data(), {rows, 2});
    const View pre = View::of(before.data(), {rows, kHidden});
    const View post = View::of(after.data(), {rows, kHidden});
    const View grad_post = View::of(grad_hidden.data(), {rows, kHidden});
    const View y = View::of(guess.data(), {rows, 1});
    ops::linear(context, {.x = x,
                          .weight = table_.value(hidden_weight_),
                          .bias = table_.value(hidden_bias_),
                          .y = pre});
    ops::activation(context, {.kind = ops::ActivationKind::kTanh, .x = pre, .y = post});
    ops::linear(
        context,
        {.x = post, .weight = table_.value(out_weight_), .bias = table_.value(out_bias_), .y = y});
    int64_t right = 0;
    for (size_t row = 0; row < targets.size(); ++row) {
      right += guess[row] * targets[row] > 0;
      grad[row] = static_cast<float>(input.loss_scale * weight * (guess[row] - targets[row]));
    }
    const ConstView grad_y = ConstView::of(grad.data(), {rows, 1});
    ops::linear_backward_weight(context, {.grad_y = grad_y,
                                          .x = post,
                                          .grad_weight = table_.gradient(out_weight_),
                                          .grad_bias = table_.gradient(out_bias_)});
    // Gradients are ready from the end of the table to its beginning: the engine exchanges this
    // part meanwhile.
    const int64_t out_begin = table_.parameters()[static_cast<size_t>(out_weight_)].range.begin;
    if (input.gradients_ready) input.gradients_ready({out_begin, table_.size_elements()});
    ops::linear_backward_input(
        context, {.grad_y = grad_y, .weight = table_.value(out_weight_), .grad_x = grad_post});
    ops::activation_backward(context, {.kind = ops::ActivationKind::kTanh,
                                       .grad_y = grad_post,
                                       .saved = post,
                                       .grad_x = grad_post});
    ops::linear_backward_weight(context, {.grad_y = grad_post,
                                          .x = x,
                                          .grad_weight = table_.gradient(hidden_weight_),
                                          .grad_bias = table_.gradient(hidden_bias_)});
    if (input.gradients_ready) input.gradients_ready({0, out_begin});
    return right;
  }

 private:
  ParameterTable& table_;
  int hidden_weight_, hidden_bias_, out_weight_, out_bias_;
};

constexpr const char* kRecipe = R"({
  "train_batch_size": 256,
  "train_micro_batch_size_per_gpu": 64,
  "optimizer": {"type": "OneBitAdam", "params": {"lr": 1e-2, "freeze_step": 100}},
  "run": {"steps": 400}
})";

void train(comm::Communicator& communicator) {
  Context context = Context::cpu(1);
  const Json recipe = parse_json(kRecipe, "recipe");
  Keys keys(recipe, "recipe");
  const engine::EngineConfig config = engine::parse_engine_config(keys);
  keys.check();

  ParameterTable table;
  Perceptron model(table);
  table.allocate(context.device(), config.compute);
  table.initialize(config.run.seed);
  engine::Engine engine(context, table, config, communicator);
  engine.broadcast_values();

  const double weight = communicator.world_size() / static_cast<double>(engine.batch().train);
  for (uint64_t sample = 0; engine.completed_steps() < config.run.steps;) {
    RandomSequence random(config.run.seed, static_cast<uint64_t>(communicator.rank()), sample++);
    std::vector<float> points, targets;
    for (int64_t row = 0; row < engine.batch().micro; ++row) {
      const double x = 2 * random.uniform() - 1, y = 2 * random.uniform() - 1;
      points.insert(points.end(), {static_cast<float>(x), static_cast<float>(y)});
      targets.push_back(x * x + y * y < 0.6 ? 1.0f : -1.0f);
    }
    int64_t right = 0;
    engine.backward([&](const engine::BackwardInput& input) {
      right = model.forward_backward(context, points, targets, weight, input);
    });
    const auto outcome = engine.step();
    communicator.all_reduce(std::span(&right, 1), comm::Reduction::kSum);
    if (communicator.rank() == 0 && outcome && outcome->step % 50 == 0) {
      fmt::print("step {:3}  {:10}  {:5.1f} % right  {:6} bytes sent\n", outcome->step,
                 optim::name_of(outcome->phase),
                 100.0 * static_cast<double>(right) / static_cast<double>(engine.batch().train),
                 outcome->wire_bytes);
    }
  }
}

}  // namespace

int main() {
  comm::run_thread_world(4, train);
}
