// Training on CUDA devices: the CPU's losses, the same bits twice, checkpoints that resume on the
// other kind of device, ranks with a device each.
#include <gtest/gtest.h>

#include "onebit/exchange/transport/device_communicator.h"
#include "onebit/exchange/transport/nccl_communicator.h"
#include "onebit/math/device/memory.h"
#include "tests/pretrain/pretraining_runs.h"

namespace onebit::pretrain {
namespace {

constexpr const char* kRecipe = R"({
  "train_batch_size": 8, "train_micro_batch_size_per_gpu": 4, "gradient_clipping": 1.0,
  "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "weight_decay": 0.01}},
  "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 4, "warmup_max_lr": 1e-3}},
  "model": {"preset": "bert-tiny", "max_position_embeddings": 32},
  "data": {"sequence_length": 32, "max_predictions_per_sequence": 5},
  "run": {"steps": 8, "checkpoint_every": 4, "seed": 3}})";

// The updates of a run that continues after its first measurement of the noise, which is made at
// the ninth exchange after a freeze at update 3 or 4.
constexpr size_t kMeasured = 16;

enum class Where { kCpu, kCuda };

class CudaTraining : public PretrainingRuns {
 protected:
  void SetUp() override {
    if (memory::cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device here";
  }

  PretrainingOptions options(const std::string& name, int64_t steps) const {
    PretrainingOptions options = options_of(kRecipe, name);
    options.recipe.values["run"]["steps"] = steps;
    options.valid.clear();
    return options;
  }

  // One rank, or ranks that are threads. On CUDA each has a device, and NCCL between them, where
  // there are as many devices. Otherwise they share them. `nodes` has the node of each rank, and
  // without any there is one node.
  static void train(const PretrainingOptions& options, Where where, int ranks = 1,
                    const std::vector<int>& nodes = {}) {
    comm::run_thread_world(ranks, [&](comm::Communicator& world) {
      if (!nodes.empty()) world.set_nodes(comm::Nodes(nodes));
      if (where == Where::kCpu) {
        Context context = Context::cpu(1);
        run_pretraining(context, options, world);
        return;
      }
      const int devices = memory::cuda_device_count();
      Context context = Context::cuda(world.rank() % devices);
      const bool nccl = ranks > 1 && devices >= ranks && transport::nccl_is_built();
      const auto between = transport::make_device_communicator(
          world.duplicate(), context.device(),
          nccl ? transport::DeviceTransport::kNccl : transport::DeviceTransport::kStaged);
      run_pretraining(context, options, *between);
    });
  }

  // Equal up to rounding. Rounding may flip the sign of an element whose residual is near zero,
  // which then moves the other way for an update or two. This is allowed after `exact_steps`.
  void expect_near(const std::string& name, const std::string& expected, size_t steps,
                   size_t exact_steps = 50) const {
    const std::vector<double> got = losses(name), wanted = losses(expected);
    ASSERT_EQ(got.size(), steps);
    ASSERT_EQ(wanted.size(), steps);
    for (size_t step = 0; step < steps; ++step) {
      const double tolerance = step < exact_steps ? 1e-4 : 5e-3;
      EXPECT_NEAR(got[step], wanted[step], tolerance * wanted[step])
          << name << ", step " << step + 1;
    }
  }

  // As the checkpoint of the last update has it: squared norms of local gradients and of their
  // average, measured once.
  void expect_same_noise(const std::string& name, const std::string& expected) const {
    const auto state_of = [&](const std::string& run) {
      const std::string tag = "global_step" + std::to_string(kMeasured);
      return read_json(corpus_.folder(run) / tag / "state.json").at("state");
    };
    const Json got = state_of(name), wanted = state_of(expected);
    EXPECT_EQ(got.at("noise_cycles"), 1);
    for (const size_t norm : {0, 1}) {
      const auto square = wanted.at("noise_norms").at(norm).get<double>();
      EXPECT_NEAR(got.at("noise_norms").at(norm).get<double>(), square, 0.02 * square) << name;
    }
  }

  std::string model_of(const std::string& name, int step) const {
    const std::string tag = "global_step" + std::to_string(step);
    return read_file(corpus_.folder(name) / tag / "model" / "model.safetensors");
  }
};

TEST_F(CudaTraining, LossesOfFiftyStepsAreTheCpus) {
  train(options("cpu", 50), Where::kCpu);
  train(options("cuda", 50), Where::kCuda);
  expect_near("cuda", "cpu", 50);
}

TEST_F(CudaTraining, TwoRunsGiveTheSameBits) {
  for (const char* type : {"", "bf16", "fp16"}) {
    for (const char* run : {"one", "other"}) {
      PretrainingOptions given = options(std::string(run) + type, 4);
      if (*type != 0) given.recipe.values[type]["enabled"] = true;
      train(given, Where::kCuda);
    }
    EXPECT_EQ(losses(std::string("one") + type), losses(std::string("other") + type)) << type;
    EXPECT_EQ(model_of(std::string("one") + type, 4), model_of(std::string("other") + type, 4))
        << type;
  }
}

TEST_F(CudaTraining, ResumesOnTheOtherKindOfDevice) {
  train(options("whole", 8), Where::kCpu);
  for (const Where first : {Where::kCpu, Where::kCuda}) {
    const std::string name = first == Where::kCpu ? "from_cpu" : "from_cuda";
    train(options(name, 4), first);
    PretrainingOptions rest = options(name, 8);
    rest.resume = true;
    train(rest, first == Where::kCpu ? Where::kCuda : Where::kCpu);
    expect_near(name, "whole", 8);
  }
}

TEST_F(CudaTraining, ResumesBitForBit) {
  train(options("unbroken", 8), Where::kCuda);
  train(options("broken", 4), Where::kCuda);
  PretrainingOptions rest = options("broken", 8);
  rest.resume = true;
  train(rest, Where::kCuda);
  EXPECT_EQ(losses("broken"), losses("unbroken"));
  EXPECT_EQ(model_of("broken", 8), model_of("unbroken", 8));
}

TEST_F(CudaTraining, OptimizersGiveTheCpusLosses) {
  for (const char* optimizer :
       {R"({"type": "OneBitAdam", "params": {"lr": 1e-3, "freeze_step": 4}})",
        R"({"type": "Lamb", "params": {"lr": 1e-3, "weight_decay": 0.01}})",
        R"({"type": "OneBitLamb", "params": {"lr": 1e-3, "freeze_step": 4}})"}) {
    const Json chosen = parse_json(optimizer, "optimizer");
    const std::string name = chosen.at("type").get<std::string>();
    for (const Where where : {Where::kCpu, Where::kCuda}) {
      PretrainingOptions given = options(name + (where == Where::kCpu ? "_cpu" : "_cuda"), 8);
      given.recipe.values["optimizer"] = chosen;
      train(given, where);
    }
    expect_near(name + "_cuda", name + "_cpu", 8);
  }
}

TEST_F(CudaTraining, RanksOnDevicesOfTheirOwnExchangeThroughNccl) {
  if (memory::cuda_device_count() < 2 || !transport::nccl_is_built()) {
    GTEST_SKIP() << "needs two CUDA devices and NCCL";
  }
  for (const Where where : {Where::kCpu, Where::kCuda}) {
    PretrainingOptions given = options(where == Where::kCpu ? "cpu" : "cuda", kMeasured);
    given.recipe.values["optimizer"] =
        parse_json(R"({"type": "OneBitAdam", "params": {"lr": 1e-3, "freeze_step": 4}})", "o");
    train(given, where, 2);
  }
  expect_near("cuda", "cpu", kMeasured, 8);
  expect_same_noise("cuda", "cpu");
}

// Two nodes of two ranks: means inside a node, signs between nodes, shares of the update, and local
// updates of 0/1 Adam.
TEST_F(CudaTraining, TwoLevelsGiveTheCpusLosses) {
  for (const char* optimizer :
       {R"({"type": "OneBitAdam", "params": {"lr": 1e-3, "freeze_step": 3}})",
        R"({"type": "OneBitLamb", "params": {"lr": 1e-3, "freeze_step": 3}})",
        R"({"type": "ZeroOneAdam", "params": {"lr": 1e-3, "var_freeze_step": 3,
            "var_update_scaler": 2, "local_step_scaler": 2, "local_step_clipper": 2}})"}) {
    const Json chosen = parse_json(optimizer, "optimizer");
    const std::string name = chosen.at("type").get<std::string>() + "_two";
    // All optimizers measure the noise by the same passes.
    const int64_t steps = name == "OneBitAdam_two" ? kMeasured : 8;
    for (const Where where : {Where::kCpu, Where::kCuda}) {
      PretrainingOptions given = options(name + (where == Where::kCpu ? "_cpu" : "_cuda"), steps);
      given.recipe.values["optimizer"] = chosen;
      given.recipe.values["train_micro_batch_size_per_gpu"] = 2;
      given.recipe.values["run"]["levels"] = "two";
      train(given, where, 4, {0, 0, 1, 1});
    }
    expect_near(name + "_cuda", name + "_cpu", steps, 8);
    if (steps == kMeasured) expect_same_noise(name + "_cuda", name + "_cpu");
  }
}

}  // namespace
}  // namespace onebit::pretrain
