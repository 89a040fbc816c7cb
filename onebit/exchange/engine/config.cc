#include "onebit/exchange/engine/config.h"

#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "onebit/exchange/comm/bucket.h"
#include "onebit/exchange/engine/optimizer_list.h"
#include "onebit/ground/base/json.h"

namespace onebit::engine {
namespace {

void read_batch(Keys& recipe, BatchSizes& batch) {
  const char* others = "computed from the other two and the number of ranks";
  recipe.integer("train_batch_size", batch.train, at_least(1),
                 {"sequences per step, over all ranks", others});
  recipe.integer("train_micro_batch_size_per_gpu", batch.micro, at_least(1),
                 {"sequences per forward and backward pass of a rank", others});
  recipe.integer("gradient_accumulation_steps", batch.accumulation, at_least(1),
                 {"forward and backward passes of a rank per step", others});
}

void read_loss_scale(Keys& fp16, optim::LossScalerOptions& options) {
  // Gradients are multiplied by the scale in f32. Powers that overflow f16 are common in configs
  // and only cause a few skipped steps.
  constexpr int kLargestPower = std::numeric_limits<float>::max_exponent - 1;
  constexpr double kLargest = std::numeric_limits<float>::max();
  int64_t power = std::lround(std::log2(options.initial_scale)), hysteresis = options.hysteresis;
  fp16.number("loss_scale", options.static_scale, at_least(0).up_to(kLargest),
              "constant loss scale, where 0 makes it dynamic");
  fp16.integer("initial_scale_power", power, at_least(0).up_to(kLargestPower),
               "initial dynamic scale, as a power of 2");
  fp16.integer("loss_scale_window", options.window, at_least(1),
               "steps without an overflow before the scale is doubled");
  fp16.integer("hysteresis", hysteresis, at_least(1).up_to(1e6),
               "overflows before the scale is halved");
  fp16.boolean("consecutive_hysteresis", options.consecutive_hysteresis,
               "a step without an overflow resets the hysteresis");
  fp16.number("min_loss_scale", options.min_scale, above(0).up_to(kLargest),
              "the smallest value of a dynamic scale");
  fp16.fixed("auto_cast", false, "inputs are tokens, which have no type to cast");
  fp16.fixed("fp16_master_weights_and_grads", false, "weights and gradients are kept in f32");
  options.initial_scale = std::ldexp(1.0, static_cast<int>(power));
  options.hysteresis = static_cast<int>(hysteresis);
}

// The fp16 and bf16 sections determine the compute type of weights and activations.
void read_precision(Keys& recipe, EngineConfig& config) {
  Keys fp16 = recipe.section("fp16", "16-bit floats with a loss scale");
  bool half = false, brain = false;
  fp16.boolean("enabled", half, "compute in f16");
  optim::LossScalerOptions loss_scale;
  read_loss_scale(fp16, loss_scale);
  std::vector<std::optional<bool>> asked;
  for (const char* name : {"bf16", "bfloat16"}) {
    Keys bf16 = recipe.section(name, "16-bit floats with the range of f32, without a loss scale");
    std::optional<bool> enabled = false;
    bf16.boolean_or_word("enabled", enabled, "auto",
                         "compute in bf16. auto: on CUDA devices, where it is many times faster, "
                         "but not on CPUs, and not if fp16 is enabled");
    bf16.fixed("immediate_grad_update", false, "gradients are f32 from the start");
    if (recipe.has(name)) asked.push_back(enabled);
    brain |= enabled.value_or(false);  // for_device() has replaced "auto" where a device is known
  }
  recipe.require(asked.size() < 2 || asked[0] == asked[1], "bfloat16",
                 "is another name for bf16, but the two differ in `enabled`; remove one of them");
  recipe.require(!(half && brain), "fp16", "and bf16 are both enabled; enable only one of them");
  config.compute = half ? DType::kF16 : brain ? DType::kBF16 : DType::kF32;
  if (half) config.loss_scale = loss_scale;
  // As in DeepSpeed, gradients are sent in the type in which they were computed by default.
  config.wire = config.compute;
  recipe.choice(
      "communication_data_type", config.wire,
      {{"fp32", DType::kF32}, {"fp16", DType::kF16}, {"bf16", DType::kBF16}},
      {"type in which gradients are averaged before the freeze", "the type of the computation"});
}

void read_dealing(Keys& run, BatchSizes& batch) {
  // The key alone changes no run. The resulting sizes do.
  run.boolean(
      "uneven_batches", batch.uneven,
      About("allow a train_batch_size that does not divide evenly among the ranks: micro-batches "
            "differ by one sequence, and train_micro_batch_size_per_gpu is the maximum")
          .without_influence());
}

void read_length(Keys& run, RunConfig& config) {
  std::optional<int64_t> steps;
  auto seed = static_cast<int64_t>(config.seed);
  run.integer("steps", steps, at_least(1), "updates in the whole run");
  run.integer("seed", seed, {}, "random seed of initial values, data order, masks and dropout");
  run.integer("max_skipped_steps", config.max_skipped_steps, at_least(1),
              About("consecutive steps with a non-finite gradient after which the run ends")
                  .without_influence());
  config.steps = steps.value_or(0);
  config.seed = static_cast<uint64_t>(seed);
}

void read_watch(Keys& run, EngineConfig& engine) {
  RunConfig& config = engine.run;
  run.integer("watch_every", config.watch_every, at_least(0),
              About("updates between log lines of the largest update relative to the learning "
                    "rate, where 0 is never")
                  .without_influence());
  run.text("watch_tensors", config.watch_tensors,
           About("also log the largest value in tensors whose name contains this text")
               .without_influence());
  run.boolean("watch_adam", config.watch_adam,
              About("compare with Adam's updates over the same steps (slow, for studies)")
                  .without_influence());
  run.require(!config.watch_adam || config.watch_every > 0, "watch_adam",
              "compares updates over intervals of watch_every steps: set watch_every as well");
  const bool follows_adam = engine.optimizer && engine.optimizer->followed_adam() != nullptr;
  run.require(
      !config.watch_adam || !engine.optimizer || follows_adam, "watch_adam",
      "compares updates with Adam's, but this optimizer is not a variant of Adam; remove the key");
}

// DeepSpeed has these keys only in its 1-bit optimizers. Here every optimizer has them.
void read_transport(Keys& params, TransportRequest& transport) {
  params.boolean("cuda_aware", transport.cuda_aware,
                 "pass device memory to MPI directly (no effect on CPUs)");
  params.word("comm_backend_name", transport.backend, {"nccl", "mpi", "tcp"},
              {"transport between CUDA devices (no effect on CPUs)",
               "NCCL where every rank has its own device, otherwise what connects the processes"});
}

void read_products(Keys& run, RunConfig& config) {
  run.boolean("tf32", config.tf32,
              "on CUDA devices, round the operands of f32 products to tf32, which tensor cores "
              "multiply: faster and less exact. It has no effect on CPUs, in bf16 and in fp16");
  run.boolean("pack_weights", config.pack_weights,
              About("on CPUs with bf16 instructions other than AMX, keep copies of the matrices in "
                    "the layout of their products: faster by a few percent with gradient "
                    "accumulation, for 4 bytes per element")
                  .without_influence());
}

void read_exchange(Keys& run, EngineConfig& engine) {
  double megabytes = 4;
  // A bucket holds at least one block.
  constexpr double kMin = comm::kBlockElements * sizeof(float) / double{1 << 20};
  run.number("bucket_mb", megabytes, at_least(kMin).up_to(4096),
             "MiB of f32 gradients per bucket, which is the minimum in the compressed phase");
  engine.run.bucket_bytes = static_cast<int64_t>(megabytes * (1 << 20));
  run.boolean("overlap", engine.run.overlap,
              "send buckets while the backward pass is still running");
  run.choice(
      "levels", engine.run.levels,
      {{"one", LevelsWanted::kOne}, {"two", LevelsWanted::kTwo}, {"auto", LevelsWanted::kEither}},
      "levels of the 1-bit exchange: one bit between all ranks, or exact means inside a node and "
      "one bit between nodes. auto: two where the placement of ranks on hosts allows it");
  const bool compresses = !engine.optimizer || engine.optimizer->compresses();
  run.require(compresses || engine.run.levels != LevelsWanted::kTwo, "levels",
              "is \"two\", but this optimizer has no compressed phase; remove the key");
  run.require(!engine.run.watch_adam || engine.run.levels == LevelsWanted::kOne, "levels",
              "must be \"one\" with watch_adam, which reads the gradients of every rank; remove "
              "one of the two keys");
  // why_compressed_buckets_wait() itself depends on run.clip.
  engine.run.clip = Clip::kByBucket;
  const std::string why = engine.why_compressed_buckets_wait();
  if (!why.empty()) engine.run.clip = Clip::kExact;
  run.choice("clip", engine.run.clip, {{"by_bucket", Clip::kByBucket}, {"exact", Clip::kExact}},
             {"gradient_clipping in the compressed phase: each bucket when it is sent, or all "
              "buckets by one norm after the backward pass",
              "by_bucket, or exact where no bucket can be sent early"});
  run.require(why.empty() || engine.run.clip == Clip::kExact, "clip",
              "is \"by_bucket\", which requires that buckets are sent during the backward pass, "
              "but they are sent after it: {}; remove the key, or set it to \"exact\"",
              why);
  const bool clips = engine.gradient_clipping > 0;
  if (clips && compresses) return;
  run.note("clip", "no effect, {}",
           clips
               ? "this optimizer has no compressed phase"
               : "gradients are not clipped: gradient_clipping sets the norm above which they are");
  run.leave_out("clip");
}

// DeepSpeed's keys whose behaviour onebit always has, or that control features it does not contain.
void accept_without_effect(Keys& recipe) {
  const std::pair<const char*, const char*> keys[] = {
      {"zero_allow_untested_optimizer", "onebit has no ZeRO"},
      {"zero_force_ds_cpu_optimizer", "onebit has no ZeRO"},
      {"aio", "no state is moved to a disk during a step"},
      {"disable_allgather", "exchanges are always all-to-all and all-gather"},
      {"dump_state", "recipe.resolved.json in the run's folder contains every value used"},
      {"memory_breakdown", "the memory table is always printed"},
      {"dataloader_drop_last", "every example is used"},
      {"vocabulary_size", "the vocabulary is padded internally"},
      {"prescale_gradients", "sums are taken in f32, where the order of scaling does not matter"},
      {"gradient_predivide_factor", "for the same reason as prescale_gradients"},
      {"timers", "throughput is always measured"},
      {"steps_per_print", "the progress line is updated at fixed intervals of time"},
      {"wall_clock_breakdown", "the time of each part is always in metrics.jsonl"},
      {"activation_checkpointing", "use the model section's memory options"},
      {"sparse_attention",
       "attention is dense. DeepSpeed's own scripts read this key only with "
       "--deepspeed_sparse_attention"},
  };
  for (const auto& [key, reason] : keys) recipe.without_effect(key, reason);
}

// The keys of DeepSpeed's section, which configs keep when they switch ZeRO off.
constexpr const char* kZeroKeys[] = {"allgather_bucket_size",
                                     "allgather_partitions",
                                     "contiguous_gradients",
                                     "cpu_offload",
                                     "cpu_offload_param",
                                     "cpu_offload_use_pin_memory",
                                     "elastic_checkpoint",
                                     "ignore_unused_parameters",
                                     "legacy_stage1",
                                     "load_from_fp32_weights",
                                     "log_trace_cache_warnings",
                                     "memory_efficient_linear",
                                     "mics_hierarchical_params_gather",
                                     "mics_shard_size",
                                     "offload_optimizer",
                                     "offload_param",
                                     "overlap_comm",
                                     "override_module_apply",
                                     "pipeline_loading_checkpoint",
                                     "reduce_bucket_size",
                                     "reduce_scatter",
                                     "round_robin_gradients",
                                     "stage3_gather_16bit_weights_on_model_save",
                                     "stage3_gather_fp16_weights_on_model_save",
                                     "stage3_max_live_parameters",
                                     "stage3_max_reuse_distance",
                                     "stage3_model_persistence_threshold",
                                     "stage3_module_granularity_threshold",
                                     "stage3_param_persistence_threshold",
                                     "stage3_prefetch_bucket_size",
                                     "stage3_use_all_reduce_for_fetch_params",
                                     "sub_group_size",
                                     "use_multi_rank_bucket_allreduce",
                                     "zero_hpz_partition_size",
                                     "zero_quantized_gradients",
                                     "zero_quantized_nontrainable_weights",
                                     "zero_quantized_weights",
                                     "zeropp_loco_param"};

void refuse_unsupported(Keys& recipe, const ModelKeys& model) {
  Keys zero = recipe.section("zero_optimization", "DeepSpeed's ZeRO");
  zero.fixed("stage", int64_t{0},
             "every rank keeps the full state of the optimizer (1-bit optimizers refuse ZeRO in "
             "DeepSpeed as well)");
  for (const char* key : kZeroKeys) zero.without_effect(key, "ZeRO is off at stage 0");
  recipe.fixed("sparse_gradients", false, "the dense exchange of embeddings is compressed anyway");
  const char* metrics = "metrics.jsonl and TensorBoard events hold every value";
  recipe.off("amp", "use fp16 or bf16");
  for (const char* monitor : {"wandb", "comet", "csv_monitor"}) recipe.off(monitor, metrics);
  recipe.off("flops_profiler", "the time of each part of a step is in metrics.jsonl");
  recipe.off("comms_logger", "the time and the bytes of the exchange are in metrics.jsonl");
  recipe.off("elasticity", "a run continues on another number of ranks with --resume");
  recipe.off("autotuning", "onebit plan compares the ways to exchange gradients");
  for (const char* key : {"curriculum_learning", "data_efficiency"}) {
    recipe.off(key, "lengths and order of the data are those of the section data");
  }
  recipe.off("eigenvalue", "it serves quantization, which onebit does not have");
  if (!model.progressive_layer_drop) {
    recipe.off("progressive_layer_drop",
               "it skips layers, which only pre-training supports. In this task every layer "
               "computes in every step: turn it off to train all layers");
  }
  Keys checkpoint = recipe.section("checkpoint", "DeepSpeed's checkpoints");
  checkpoint.without_effect("tag_validation", "validation is always as strict as \"Fail\"");
  checkpoint.without_effect("parallel_write", "ranks always write in parallel");
  checkpoint.accepted("use_node_local_storage",
                      "hosts without a shared disk always store their own part of a checkpoint");
  checkpoint.fixed(
      "load_universal", false,
      "onebit cannot resume from DeepSpeed's training state. --initialize-from reads its models");
  Keys types = recipe.section("data_types", "DeepSpeed's data types");
  std::string accumulation = "fp32";
  types.word("grad_accum_dtype", accumulation, {"fp32"}, "gradients are accumulated in f32");
}

}  // namespace

Json for_device(Json recipe, Device device) {
  if (!recipe.is_object()) return recipe;
  const auto enabled = [&recipe](const char* name) {
    const auto section = recipe.find(name);
    const bool has_one = section != recipe.end() && section->is_object();
    return has_one ? section->value("enabled", Json()) : Json();
  };
  for (const char* name : {"bf16", "bfloat16"}) {
    if (enabled(name) != "auto") continue;
    recipe[name]["enabled"] = !device.is_cpu() && enabled("fp16") != true;
  }
  return recipe;
}

std::string EngineConfig::why_compressed_buckets_wait() const {
  if (!run.overlap) return "run.overlap is false";
  if (compute == DType::kF16) return "with fp16 all ranks first agree that gradients are finite";
  if (gradient_clipping > 0 && run.clip == Clip::kExact) {
    return "run.clip \"exact\" needs the norm of the whole gradient";
  }
  return {};
}

// Packing once costs what it saves in one micro-batch. In f32 it gains nothing on a Zen 3, and the
// copies are twice as large.
bool EngineConfig::packs_weights(int64_t accumulation, bool bf16_gains) const {
  return run.pack_weights && accumulation > 1 && compute == DType::kBF16 && bf16_gains;
}

optim::RunFacts EngineConfig::run_facts(const optim::Schedule& schedule) const {
  return {.total_steps = run.steps,
          .schedule_warmup = schedule.warmup_updates(),
          .bucket_bytes = run.bucket_bytes};
}

namespace {

void warn_of_schedule(const EngineConfig& config, Keys& recipe) {
  std::vector<std::string> warnings;
  const auto schedule = config.scheduler.make(config.run.steps, warnings);
  for (const auto& warning : warnings) recipe.warn("{}", warning);
  for (const auto& warning : config.optimizer->warnings(config.run_facts(*schedule))) {
    recipe.warn("{}", warning);
  }
}

}  // namespace

EngineConfig parse_engine_config(Keys& recipe, const ModelKeys& listed_by_caller) {
  EngineConfig config;
  config.place = recipe.source();
  read_batch(recipe, config.batch);
  recipe.number("gradient_clipping", config.gradient_clipping, at_least(0),
                "the largest norm of the gradient averaged over ranks, where 0 is no clipping");
  read_precision(recipe, config);
  Keys optimizer =
      recipe.section("optimizer", "the optimizer, which computes updates from gradients");
  recipe.need("optimizer", R"(give {"type": "AdamW", "params": ...})");
  config.optimizer =
      read_optimizer(optimizer, [&](Keys& params) { read_transport(params, config.transport); });
  Keys scheduler = recipe.section("scheduler", "the learning rate of each update");
  Keys run = recipe.section(
      "run", "length of the run, intervals counted in updates, and the exchange of gradients");
  read_length(run, config.run);
  read_dealing(run, config.batch);
  read_watch(run, config);
  read_exchange(run, config);
  read_products(run, config.run);
  accept_without_effect(recipe);
  refuse_unsupported(recipe, listed_by_caller);
  recipe.accepted("comment", "a remark for readers of the recipe");
  recipe.accepted(
      "$schema", "the JSON Schema with which an editor checks the recipe (`onebit recipe schema`)");
  const bool is_long = config.run.steps > 0;
  if (config.optimizer && is_long) {
    const std::string conflict = config.optimizer->conflict_with({.total_steps = config.run.steps});
    optimizer.require(conflict.empty(), "params", "{}", conflict);
  }
  const double rate = config.optimizer ? config.optimizer->learning_rate() : 0;
  config.scheduler = optim::read_schedule(scheduler, rate,
                                          is_long ? std::optional(config.run.steps) : std::nullopt);
  // The engine repeats the warnings when it knows the length of every run.
  if (config.optimizer && is_long) scheduler.attempt([&] { warn_of_schedule(config, recipe); });
  config.recipe = recipe;
  return config;
}

}  // namespace onebit::engine
