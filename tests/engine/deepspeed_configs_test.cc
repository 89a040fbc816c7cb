// Configurations as DeepSpeed's users write them, each with what is expected of it: it loads, with
// a word on every key that has no effect, or it is refused by the name of the key.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "onebit/base/json.h"
#include "onebit/engine/config.h"
#include "onebit/optim/adam_options.h"
#include "tests/base/message_of.h"

namespace onebit::engine {
namespace {

EngineConfig parse(const std::string& text) {
  Keys keys(parse_json(text, "ds_config.json"), "ds_config.json");
  EngineConfig config = parse_engine_config(keys);
  keys.check();
  return config;
}

// The keys of the notices, each of which gives a reason.
std::set<std::string> noticed(const EngineConfig& config) {
  std::set<std::string> keys;
  for (const std::string& notice : config.notices) {
    const size_t end = notice.find(": no effect, ");
    EXPECT_NE(end, std::string::npos) << notice;
    EXPECT_GT(notice.size(), end + 20) << notice;
    keys.insert(notice.substr(0, end));
  }
  return keys;
}

TEST(DeepSpeedConfigs, PreTrainingWithOneBitAdam) {
  const EngineConfig config = parse(R"({
    "train_batch_size": 512, "train_micro_batch_size_per_gpu": 8, "steps_per_print": 50,
    "prescale_gradients": false, "gradient_clipping": 1.0, "wall_clock_breakdown": false,
    "optimizer": {"type": "OneBitAdam", "params": {"lr": 2e-4, "weight_decay": 0.01,
      "bias_correction": false, "freeze_step": 1000, "cuda_aware": false,
      "comm_backend_name": "nccl"}},
    "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 100}},
    "fp16": {"enabled": true, "loss_scale": 0, "initial_scale_power": 32, "hysteresis": 2}})");
  EXPECT_EQ(config.optimizer->last_dense_update({}), 1000);
  EXPECT_FALSE(config.optimizer->followed_adam()->bias_correction);
  EXPECT_EQ(config.compute, DType::kF16);
  EXPECT_EQ(config.wire, DType::kF16);
  EXPECT_EQ(config.loss_scale.initial_scale_power, 32);
  EXPECT_EQ(noticed(config), (std::set<std::string>{"steps_per_print", "prescale_gradients",
                                                    "wall_clock_breakdown"}));
}

TEST(DeepSpeedConfigs, FineTuningWithAdam) {
  const EngineConfig config = parse(R"({
    "train_batch_size": 32, "train_micro_batch_size_per_gpu": 4, "steps_per_print": 10,
    "optimizer": {"type": "Adam", "params": {"lr": 3e-5, "weight_decay": 0.0,
      "bias_correction": false, "torch_adam": true, "adam_w_mode": false}},
    "gradient_clipping": 1.0, "fp16": {"enabled": true}})");
  EXPECT_FALSE(config.optimizer->compresses());
  EXPECT_FALSE(config.optimizer->followed_adam()->decoupled_decay);
  EXPECT_EQ(config.batch.train, 32);
  EXPECT_EQ(noticed(config), std::set<std::string>{"steps_per_print"});
}

// Phase 2 of DeepSpeed's BERT example with LAMB. Its engine refuses LAMB with bf16; here the type
// of the computation is nothing to an optimizer.
TEST(DeepSpeedConfigs, PreTrainingWithLamb) {
  for (const char* type :
       {R"("fp16": {"enabled": true, "loss_scale": 0})", R"("bf16": {"enabled": true})"}) {
    const EngineConfig config = parse(R"({
      "train_batch_size": 32768, "train_micro_batch_size_per_gpu": 16, "steps_per_print": 1000,
      "prescale_gradients": false, "gradient_clipping": 1.0, "wall_clock_breakdown": false,
      "optimizer": {"type": "Lamb", "params": {"lr": 2e-3, "weight_decay": 0.01,
        "bias_correction": false, "max_coeff": 0.3, "min_coeff": 0.01}}, )" +
                                      std::string(type) + "}");
    EXPECT_EQ(config.optimizer->learning_rate(), 2e-3);
    EXPECT_NE(config.optimizer->describe().find("trust ratio 0.01 to 0.3"), std::string::npos);
    EXPECT_EQ(config.batch.train, 32768);
    EXPECT_EQ(noticed(config), (std::set<std::string>{"steps_per_print", "prescale_gradients",
                                                      "wall_clock_breakdown"}));
  }
}

// Everything that may stand in a config without being asked for.
TEST(DeepSpeedConfigs, SectionsThatAreOff) {
  const EngineConfig config = parse(R"({
    "train_batch_size": 16, "gradient_accumulation_steps": 2, "communication_data_type": "fp32",
    "optimizer": {"type": "AdamW", "params": {"betas": [0.9, 0.98], "eps": 1e-6}},
    "bf16": {"enabled": true}, "fp16": {"enabled": false, "loss_scale_window": 500},
    "zero_optimization": {"stage": 0}, "zero_allow_untested_optimizer": true,
    "amp": {"enabled": false}, "wandb": {"enabled": false}, "comet": {"enabled": false},
    "csv_monitor": {"enabled": false, "output_path": "csv"},
    "flops_profiler": {"enabled": false, "profile_step": 1},
    "tensorboard": {"enabled": false, "output_path": "logs", "job_name": "a"},
    "checkpoint": {"tag_validation": "Warn", "use_node_local_storage": false},
    "activation_checkpointing": {"partition_activations": false},
    "data_types": {"grad_accum_dtype": "fp32"}, "sparse_gradients": false,
    "dump_state": false, "memory_breakdown": false, "disable_allgather": false})");
  EXPECT_EQ(config.compute, DType::kBF16);
  EXPECT_EQ(config.wire, DType::kF32);
  EXPECT_FALSE(config.tensorboard.enabled);
  EXPECT_EQ(noticed(config),
            (std::set<std::string>{"zero_allow_untested_optimizer", "activation_checkpointing",
                                   "dump_state", "memory_breakdown", "disable_allgather"}));
}

// A whole config each; the error names the key.
TEST(DeepSpeedConfigs, WhatIsAskedAndNotThereIsRefusedByName) {
  const std::string adam = R"("optimizer": {"type": "Adam"})";
  const std::pair<std::string, const char*> refused[] = {
      {R"("optimizer": {"type": "OneBitLamb", "params": {"lr": 2e-3, "eps_inside_sqrt": true}})",
       "optimizer.params.eps_inside_sqrt"},
      {R"("optimizer": {"type": "ZeroOneAdam", "params": {"freeze_step": 12}})",
       "optimizer.params.freeze_step"},
      {R"("optimizer": {"type": "Adam", "params": {"max_grad_norm": 1}})",
       "optimizer.params.max_grad_norm"},
      {adam + R"(, "zero_optimization": {"stage": 2})", "zero_optimization.stage"},
      {adam + R"(, "progressive_layer_drop": {"enabled": true, "theta": 0.5})",
       "progressive_layer_drop"},
      {adam + R"(, "sparse_attention": {"mode": "fixed"})", "sparse_attention"},
      {adam + R"(, "sparse_gradients": true)", "sparse_gradients"},
      {adam + R"(, "csv_monitor": {"enabled": true})", "csv_monitor"},
      {adam + R"(, "flops_profiler": {"enabled": true})", "flops_profiler"},
      {adam + R"(, "checkpoint": {"use_node_local_storage": true})",
       "checkpoint.use_node_local_storage"},
      {adam + R"(, "train_batch_size": "auto")", "train_batch_size"},
      {adam + R"(, "fp16": {"enabled": "auto"})", "fp16.enabled"},
      {adam + R"(, "fp16": {"enabled": true, "auto_cast": true})", "fp16.auto_cast"},
      {adam + R"(, "data_types": {"grad_accum_dtype": "bf16"})", "data_types.grad_accum_dtype"}};
  for (const auto& [text, key] : refused) {
    const std::string error = message_of([&text = text] { parse("{" + text + "}"); });
    EXPECT_EQ(error.rfind("ds_config.json: key `", 0), 0u) << error;
    EXPECT_NE(error.find(fmt::format("`{}`", key)), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace onebit::engine
