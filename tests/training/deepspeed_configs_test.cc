// Typical configurations of DeepSpeed's users: each is loaded, with a notice for every key without
// effect, or refused with an error that names the key.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "onebit/exchange/engine/config.h"
#include "onebit/exchange/optim/adam.h"
#include "onebit/ground/base/json.h"
#include "onebit/training/training/session_config.h"
#include "tests/base/message_of.h"

namespace onebit::training {
namespace {

using engine::EngineConfig;

struct Config : EngineConfig {
  SessionConfig session;
};

Config parse(const std::string& text) {
  Keys keys(parse_json(text, "ds_config.json"), "ds_config.json");
  Config config{engine::parse_engine_config(keys), read_session_config(keys)};
  keys.check();
  return config;
}

// The keys of the notices, each of which gives a reason.
std::set<std::string> noticed(const EngineConfig& config) {
  std::set<std::string> keys;
  for (const std::string& notice : config.recipe.notices()) {
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
  EXPECT_EQ(config.loss_scale.initial_scale, 0x1p32);
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
  EXPECT_EQ(noticed(config),
            (std::set<std::string>{"steps_per_print", "optimizer.params.torch_adam"}));
}

// The 22 configs of DeepSpeed's BERT examples (DeepSpeedExamples, bing_bert and BingBertSquad),
// with all their keys, in families whose members differ by the transport: NCCL, MPI, MPI with
// device memory.
struct Shipped {
  const char* family;
  std::string optimizer;  // type and params, without keys of the transport
  std::string others;
  int members = 1;
};

constexpr const char* kPrintsOften = R"("steps_per_print": 100, "prescale_gradients": false,
    "gradient_clipping": 1.0, "wall_clock_breakdown": false,
    "fp16": {"enabled": true, "loss_scale": 0, "initial_scale_power": 16})";
constexpr const char* kPrintsSeldom = R"("steps_per_print": 1000, "prescale_gradients": false,
    "gradient_clipping": 1.0, "wall_clock_breakdown": false,
    "fp16": {"enabled": true, "loss_scale": 0})";
constexpr const char* kSquad = R"("train_batch_size": 24, "train_micro_batch_size_per_gpu": 3,
    "steps_per_print": 10, "gradient_clipping": 1.0, "fp16": {"enabled": true})";

std::string batch(int64_t train, int64_t micro) {
  return fmt::format(R"("train_batch_size": {}, "train_micro_batch_size_per_gpu": {}, )", train,
                     micro);
}

std::vector<Shipped> shipped_configs() {
  const std::string limits =
      R"("weight_decay": 0.01, "bias_correction": false, "max_coeff": 0.3, "min_coeff": 0.01)";
  const std::string factors =
      R"("coeff_beta": 0.9, "factor_max": 4.0, "factor_min": 0.5, "factor_threshold": 0.1)";
  const std::string no_correction = R"("weight_decay": 0.01, "bias_correction": false)";
  const auto lamb = [&](const char* type, const char* rate, const std::string& more) {
    return fmt::format(R"("type": "{}", "params": {{"lr": {}, {}{})", type, rate, limits, more);
  };
  const auto adam = [&](const char* type, const char* rate, const std::string& more) {
    return fmt::format(R"("type": "{}", "params": {{"lr": {}, {}{})", type, rate, no_correction,
                       more);
  };
  const std::string zero_one = R"(, "local_step_scaler": 32678)";
  const std::string phase1 = R"(, "freeze_step": 1000, )", phase2 = R"(, "freeze_step": 6100, )";
  const std::string long_batch = batch(65536, 64), wide_batch = batch(32768, 16);
  return {
      {"LAMB 64K", lamb("Lamb", "11e-3", ""),
       long_batch + kPrintsSeldom +
           R"(, "sparse_attention": {"mode": "fixed", "block": 16, "attention": "bidirectional",
               "different_layout_per_head": true, "num_local_blocks": 4, "num_global_blocks": 1,
               "horizontal_global_attention": false, "num_different_global_patterns": 4})"},
      {"LAMB 32K", lamb("Lamb", "2e-3", ""), wide_batch + kPrintsSeldom},
      {"1-bit Adam 4K", adam("OneBitAdam", "4e-4", R"(, "freeze_step": 23000)"),
       batch(4096, 16) + kPrintsOften, 3},
      {"1-bit LAMB 64K", lamb("OneBitLamb", "11e-3", phase1 + factors), long_batch + kPrintsOften,
       3},
      {"1-bit LAMB 32K", lamb("OneBitLamb", "2e-3", phase2 + factors), wide_batch + kPrintsSeldom,
       3},
      {"0/1 Adam 128", adam("ZeroOneAdam", "4e-4", R"(, "var_freeze_step": 12500)" + zero_one),
       batch(4096, 16) + kPrintsOften, 3},
      {"0/1 Adam 512", adam("ZeroOneAdam", "2.82e-5", R"(, "var_freeze_step": 155000)" + zero_one),
       batch(4096, 16) + kPrintsOften, 3},
      {"SQuAD",
       R"("type": "Adam", "params": {"lr": 3e-5, "weight_decay": 0.0, "bias_correction": false)",
       kSquad},
      {"SQuAD, 1-bit Adam",
       R"("type": "OnebitAdam", "params": {"lr": 3e-5, "freeze_step": 400, "weight_decay": 0.0,
           "bias_correction": false)",
       kSquad, 3},
  };
}

TEST(DeepSpeedConfigs, ShippedOnesLoad) {
  const char* transports[] = {R"("cuda_aware": false, "comm_backend_name": "nccl")",
                              R"("cuda_aware": false, "comm_backend_name": "mpi")",
                              R"("cuda_aware": true, "comm_backend_name": "mpi")"};
  int loaded = 0;
  for (const Shipped& one : shipped_configs()) {
    for (int member = 0; member < one.members; ++member) {
      const std::string transport = one.members == 1 ? "" : std::string(", ") + transports[member];
      EngineConfig config;
      ASSERT_NO_THROW(config = parse(fmt::format(R"({{"optimizer": {{{}{}}}}}, {}}})",
                                                 one.optimizer, transport, one.others)))
          << one.family;
      ++loaded;
      EXPECT_EQ(config.compute, DType::kF16) << one.family;
      EXPECT_EQ(config.gradient_clipping, 1) << one.family;
      EXPECT_EQ(config.transport.cuda_aware, member == 2) << one.family;
      std::set<std::string> expected{"steps_per_print"};
      if (std::string(one.family).find("SQuAD") == std::string::npos) {
        expected.insert({"prescale_gradients", "wall_clock_breakdown"});
      }
      if (one.optimizer.find("coeff_beta") != std::string::npos) {
        for (const char* key : {"coeff_beta", "factor_max", "factor_min", "factor_threshold"}) {
          expected.insert(std::string("optimizer.params.") + key);
        }
      }
      if (one.others.find("sparse_attention") != std::string::npos) {
        expected.insert("sparse_attention");
      }
      EXPECT_EQ(noticed(config), expected) << one.family;
    }
  }
  EXPECT_EQ(loaded, 21);
}

// The engine itself refuses it, because not every model can drop layers. Pre-training accepts it
// (tests/pretrain/pretraining_config_test.cc).
TEST(DeepSpeedConfigs, TheShippedOneWithLayerDrop) {
  const auto with = [](const char* enabled) {
    return batch(4096, 16) + fmt::format(R"("steps_per_print": 1000, "prescale_gradients": true,
               "gradient_predivide_factor": 8, "gradient_clipping": 1.0,
               "wall_clock_breakdown": false, "fp16": {{"enabled": true, "loss_scale": 0}},
               "optimizer": {{"type": "Adam", "params": {{"lr": 1e-3, "weight_decay": 0.01,
                 "bias_correction": false}}}},
               "progressive_layer_drop": {{"enabled": {}, "theta": 0.5, "gamma": 0.001}})",
                                         enabled);
  };
  const std::string error = message_of([&] { parse("{" + with("true") + "}"); });
  EXPECT_EQ(error.rfind("ds_config.json: key `progressive_layer_drop` is ", 0), 0u) << error;
  EXPECT_NE(error.find("every layer computes in every step"), std::string::npos) << error;
  EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  EXPECT_EQ(noticed(parse("{" + with("false") + "}")),
            (std::set<std::string>{"steps_per_print", "prescale_gradients",
                                   "gradient_predivide_factor", "wall_clock_breakdown"}));
}

// DeepSpeed's engine refuses LAMB with bf16. onebit's optimizers do not depend on the compute type.
TEST(DeepSpeedConfigs, LambInBf16) {
  const EngineConfig config = parse(R"({
      "train_batch_size": 32768, "train_micro_batch_size_per_gpu": 16,
      "optimizer": {"type": "Lamb", "params": {"lr": 2e-3, "weight_decay": 0.01,
        "bias_correction": false, "max_coeff": 0.3, "min_coeff": 0.01}},
      "bf16": {"enabled": true}})");
  EXPECT_EQ(config.optimizer->learning_rate(), 2e-3);
  EXPECT_NE(config.optimizer->describe().find("trust ratio 0.01 to 0.3"), std::string::npos);
  EXPECT_EQ(config.batch.train, 32768);
}

// Ranks that would not exchange again: the longest interval does not fit the run.
TEST(DeepSpeedConfigs, SchedulesThatNeverSynchronize) {
  const auto error_of = [](int64_t steps, const std::string& params) {
    return message_of([&] {
      parse(fmt::format(R"({{"optimizer": {{"type": "ZeroOneAdam", "params": {{{}}}}},
                            "run": {{"steps": {}}}}})",
                        params, steps));
    });
  };
  const std::string never = R"("var_freeze_step": 60, "local_step_scaler": 1,
                               "local_step_clipper": 1000000)";
  const std::string error = error_of(100, never);
  EXPECT_EQ(error.rfind("ds_config.json: key `optimizer.params` makes the interval between", 0), 0u)
      << error;
  for (const char* part : {"40 of the run's 100", "var_freeze_step (60)",
                           "lower local_step_clipper (1000000)", "raise local_step_scaler (1)"}) {
    EXPECT_NE(error.find(part), std::string::npos) << error;
  }
  EXPECT_EQ(error.find('\n'), std::string::npos) << error;
  const std::string fine = "(no error)";
  EXPECT_EQ(error_of(60, never), fine);  // the run ends before local updates start
  EXPECT_EQ(error_of(100, R"("var_freeze_step": 60, "local_step_scaler": 1,
                             "local_step_clipper": 40)"),
            fine);
  EXPECT_EQ(error_of(125000, R"("var_freeze_step": 12500)"), fine);
  for (const char* key :
       {"var_freeze_step", "var_update_scaler", "local_step_scaler", "local_step_clipper"}) {
    EXPECT_NE(error_of(100, fmt::format(R"("{}": 0)", key)).find("at least 1"), std::string::npos);
  }
}

// Sections that a configuration may contain without enabling them.
TEST(DeepSpeedConfigs, SectionsThatAreOff) {
  const Config config = parse(R"({
    "train_batch_size": 16, "gradient_accumulation_steps": 2, "communication_data_type": "fp32",
    "optimizer": {"type": "AdamW", "params": {"betas": [0.9, 0.98], "eps": 1e-6}},
    "bf16": {"enabled": true}, "fp16": {"enabled": false, "loss_scale_window": 500},
    "zero_optimization": {"stage": 0}, "zero_allow_untested_optimizer": true,
    "amp": {"enabled": false}, "wandb": {"enabled": false}, "comet": {"enabled": false},
    "csv_monitor": {"enabled": false, "output_path": "csv"},
    "flops_profiler": {"enabled": false, "profile_step": 1},
    "tensorboard": {"enabled": false, "output_path": "logs", "job_name": "a"},
    "checkpoint": {"tag_validation": "Warn", "use_node_local_storage": true},
    "activation_checkpointing": {"partition_activations": false},
    "data_types": {"grad_accum_dtype": "fp32"}, "sparse_gradients": false,
    "dump_state": false, "memory_breakdown": false, "disable_allgather": false})");
  EXPECT_EQ(config.compute, DType::kBF16);
  EXPECT_EQ(config.wire, DType::kF32);
  EXPECT_FALSE(config.session.tensorboard.enabled);
  EXPECT_EQ(noticed(config),
            (std::set<std::string>{"zero_allow_untested_optimizer", "activation_checkpointing",
                                   "dump_state", "memory_breakdown", "disable_allgather",
                                   "checkpoint.tag_validation"}));
}

// The section has no effect. The notice names onebit's keys that trade time for memory.
TEST(DeepSpeedConfigs, ActivationCheckpointingNamesWhatToUseInstead) {
  const std::vector<std::string> expected{
      "activation_checkpointing: no effect, use the model section's memory options"};
  for (const char* section : {R"({"partition_activations": true, "cpu_checkpointing": true,
                                  "number_checkpoints": 4})",
                              "{}"}) {
    EXPECT_EQ(parse(std::string(R"({"optimizer": {"type": "Adam"},
                                    "activation_checkpointing": )") +
                    section + "}")
                  .recipe.notices(),
              expected)
        << section;
  }
  EXPECT_TRUE(parse(R"({"optimizer": {"type": "Adam"}})").recipe.notices().empty());
}

// A whole config each. The error names the key.
TEST(DeepSpeedConfigs, AMissingFeatureIsRefusedByName) {
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
      {R"("optimizer": {"type": "OneBitLamb", "params": {"min_coeff": 0.5, "max_coeff": 0.3}})",
       "optimizer.params.min_coeff"},
      {adam + R"(, "sparse_gradients": true)", "sparse_gradients"},
      {adam + R"(, "csv_monitor": {"enabled": true})", "csv_monitor"},
      {adam + R"(, "flops_profiler": {"enabled": true})", "flops_profiler"},
      {adam + R"(, "checkpoint": {"load_universal": true})", "checkpoint.load_universal"},
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
}  // namespace onebit::training
