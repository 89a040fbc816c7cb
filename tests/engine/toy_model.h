// Least squares with known samples: the smallest model the engine can train.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/exchange/engine/engine.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/philox.h"

namespace onebit::engine {

class ToyModel {
 public:
  static constexpr int64_t kInputs = 3000;  // more than one block of the sign codec

  explicit ToyModel(ParameterTable& table) : table_(table) {
    weight_ = table.add({.name = "weight",
                         .shape = {kInputs},
                         .init = InitialValue::kNormal,
                         .init_stddev = 0.1,
                         .decay = true});
    bias_ = table.add({.name = "bias", .shape = {1}});
  }

  // Adds the gradient of 0.5 * weight * (prediction - target)^2 of one sample.
  double accumulate(uint64_t sample, double weight) {
    RandomSequence random(7, 0, sample);
    std::vector<float> x(kInputs);
    double prediction = table_.value(bias_).data<float>()[0], target = 0.5;
    const float* w = table_.value(weight_).data<float>();
    for (int64_t i = 0; i < kInputs; ++i) {
      x[static_cast<size_t>(i)] = static_cast<float>(random.uniform() - 0.5);
      prediction += static_cast<double>(w[i]) * x[static_cast<size_t>(i)];
      target += std::sin(static_cast<double>(i)) * x[static_cast<size_t>(i)];
    }
    const double error = prediction - target;
    float* grad = table_.gradient(weight_).data<float>();
    for (int64_t i = 0; i < kInputs; ++i) {
      grad[i] += static_cast<float>(weight * error * x[static_cast<size_t>(i)]);
    }
    table_.gradient(bias_).data<float>()[0] += static_cast<float>(weight * error);
    return 0.5 * error * error;
  }

 private:
  ParameterTable& table_;
  int weight_, bias_;
};

// One rank's training. Distributes samples to ranks like BatchStream.
class ToyRun {
 public:
  // The number of different samples, which is small enough to learn them.
  static constexpr int64_t kSamples = 12;

  ToyRun(const EngineConfig& config, comm::Communicator& communicator)
      : communicator_(communicator), context_(Context::cpu(1)), model_(table_) {
    table_.allocate(Device{}, DType::kF32);
    table_.initialize(3);
    engine_ = std::make_unique<Engine>(context_, table_, config, communicator);
    engine_->broadcast_values();
  }

  // The loss of one step over all ranks. `poison` makes this rank's gradient not finite. `rate` is
  // the learning rate of a caller with a schedule of its own.
  double step(bool poison = false, std::optional<double> rate = {}) {
    const BatchSizes& batch = engine_->batch();
    double loss = 0;
    for (int64_t micro = 0; micro < batch.accumulation; ++micro) {
      engine_->backward([&](const BackwardInput& input) {
        for (int64_t k = 0; k < batch.micro; ++k) {
          const int64_t place =
              (micro * communicator_.world_size() + communicator_.rank()) * batch.micro + k;
          loss += model_.accumulate(
              static_cast<uint64_t>((samples_ + place) % kSamples),
              input.loss_scale * communicator_.world_size() / static_cast<double>(batch.train));
        }
        if (poison) table_.gradients().data<float>()[5] = std::nanf("");
        announces_ = static_cast<bool>(input.gradients_ready);
        if (input.gradients_ready) {
          input.gradients_ready({ToyModel::kInputs, table_.size_elements()});
          input.gradients_ready({0, ToyModel::kInputs});
        }
      });
    }
    samples_ += batch.train;
    outcome_ = engine_->step(rate).value();
    communicator_.all_reduce(std::span(&loss, 1), comm::Reduction::kSum);
    return loss / static_cast<double>(batch.train);
  }

  Engine& engine() { return *engine_; }
  ParameterTable& table() { return table_; }
  const StepOutcome& outcome() const { return outcome_; }
  // Whether the last step's ranges of the gradient were announced (gradients_ready).
  bool announces() const { return announces_; }
  int64_t samples() const { return samples_; }
  void continue_from(int64_t samples) { samples_ = samples; }
  std::vector<float> values() const {
    const float* data = table_.values().data<float>();
    return {data, data + table_.size_elements()};
  }

 private:
  comm::Communicator& communicator_;
  Context context_;
  ParameterTable table_;
  ToyModel model_;
  std::unique_ptr<Engine> engine_;
  StepOutcome outcome_;
  bool announces_ = false;
  int64_t samples_ = 0;
};

// A recipe of 40 steps with `optimizer` merged in.
inline EngineConfig toy_config(const std::string& optimizer, int64_t train, int64_t micro,
                               const std::string& more = "", const std::string& more_run = "") {
  const Json recipe = parse_json(
      R"({"train_batch_size": )" + std::to_string(train) +
          R"(, "train_micro_batch_size_per_gpu": )" + std::to_string(micro) +
          R"(, "run": {"steps": 40, "max_skipped_steps": 3)" + more_run +
          (more_run.find("bucket_mb") == std::string::npos ? R"(, "bucket_mb": 0.01)" : "") +
          R"(}, "optimizer": )" + optimizer + more + "}",
      "toy");
  Keys keys(recipe, "toy");
  EngineConfig config = parse_engine_config(keys);
  keys.check();
  return config;
}

// Optimizers and other keys for toy_config().
namespace toy {
inline constexpr const char* kAdam =
    R"({"type": "AdamW", "params": {"lr": 1e-3, "weight_decay": 0.01}})";
inline constexpr const char* kLamb =
    R"({"type": "Lamb", "params": {"lr": 1e-2, "weight_decay": 0.01}})";
inline constexpr const char* kOneBit =
    R"({"type": "OneBitAdam", "params": {"lr": 1e-3, "freeze_step": 10}})";
inline constexpr const char* kClip = R"(, "gradient_clipping": 0.5)";
inline constexpr const char* kExactly = R"(, "clip": "exact")";
}  // namespace toy

struct ToyTrace {
  std::vector<double> losses;
  std::vector<float> values;
  std::vector<StepOutcome> outcomes;
};

// Trains on the thread ranks of `nodes`. Checks that ranks agree, and returns the trace of rank 0.
inline ToyTrace train_toy(const EngineConfig& config, const comm::Nodes& nodes, int steps) {
  ToyTrace trace;
  comm::run_thread_world(nodes.ranks(), [&](comm::Communicator& communicator) {
    communicator.set_nodes(nodes);
    ToyRun run(config, communicator);
    EXPECT_EQ(run.engine().levels().two, config.run.levels == LevelsWanted::kTwo);
    for (int step = 0; step < steps; ++step) {
      const double loss = run.step();
      run.engine().with_common_values([&] { EXPECT_TRUE(run.engine().replicas_agree()); });
      if (communicator.rank() != 0) continue;
      trace.losses.push_back(loss);
      trace.outcomes.push_back(run.outcome());
    }
    if (communicator.rank() == 0) trace.values = run.values();
  });
  return trace;
}

// The same on `world` ranks of one node.
inline ToyTrace train_toy(const EngineConfig& config, int world, int steps) {
  return train_toy(config, comm::Nodes::one(world), steps);
}

}  // namespace onebit::engine
