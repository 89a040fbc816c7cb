#include "onebit/engine/config.h"

#include <limits>

#include "onebit/optim/optimizer_list.h"

namespace onebit::engine {
namespace {

// As in DeepSpeed gradients travel as what they were computed in, where nothing else is asked for.
DType parse_communication_type(JsonReader& recipe, DType compute) {
  const char* same = compute == DType::kF16 ? "fp16" : compute == DType::kBF16 ? "bf16" : "fp32";
  const std::string name = recipe.choice("communication_data_type", same, {"fp32", "fp16", "bf16"});
  if (name == "fp16") return DType::kF16;
  if (name == "bf16") return DType::kBF16;
  return DType::kF32;
}

LossScaleConfig parse_loss_scale(JsonReader& fp16) {
  LossScaleConfig config;
  config.static_scale = fp16.number("loss_scale", 0);
  const int64_t power = fp16.integer("initial_scale_power", 16);
  config.window = fp16.integer("loss_scale_window", 1000);
  config.hysteresis = static_cast<int>(fp16.integer("hysteresis", 2));
  config.consecutive_hysteresis = fp16.boolean("consecutive_hysteresis", false);
  config.min_scale = fp16.number("min_loss_scale", 1);
  require(config.static_scale >= 0, "{} must not be negative; 0 means dynamic",
          fp16.place("loss_scale"));
  require(config.min_scale > 0, "{} must be positive", fp16.place("min_loss_scale"));
  require(config.window >= 1, "{} must be at least 1", fp16.place("loss_scale_window"));
  // Gradients are multiplied by it in f32. Powers that overflow f16 are common in configs and mean
  // a few skipped steps.
  constexpr int64_t kLargestPower = std::numeric_limits<float>::max_exponent - 1;
  require(power >= 0 && power <= kLargestPower, "{} must lie in 0..{}",
          fp16.place("initial_scale_power"), kLargestPower);
  config.initial_scale_power = static_cast<int>(power);
  for (const double scale : {config.static_scale, config.min_scale}) {
    require(scale <= std::numeric_limits<float>::max(),
            "{} and min_loss_scale must be finite in f32", fp16.place("loss_scale"));
  }
  for (const char* key : {"auto_cast", "fp16_master_weights_and_grads"}) {
    require(!fp16.boolean(key, false), "{} is not supported: remove it", fp16.place(key));
  }
  return config;
}

// fp16 and bf16 sections decide the compute type of weights and activations.
void parse_precision(JsonReader& recipe, EngineConfig& config) {
  JsonReader fp16 = recipe.object("fp16");
  const bool half = fp16.boolean("enabled", false);
  config.loss_scale = parse_loss_scale(fp16);
  fp16.finish();
  bool brain = false;
  for (const char* key : {"bf16", "bfloat16"}) {
    JsonReader bf16 = recipe.object(key);
    brain |= bf16.boolean("enabled", false);
    require(!bf16.boolean("immediate_grad_update", false), "{} is not supported: remove it",
            bf16.place("immediate_grad_update"));
    bf16.finish();
  }
  require(!(half && brain), "{}: fp16 and bf16 are both enabled; enable one", config.place);
  config.compute = half ? DType::kF16 : brain ? DType::kBF16 : DType::kF32;
}

void parse_clip(JsonReader& run, EngineConfig& config) {
  config.run.clip = Clip::kByBucket;
  const std::string why = config.why_compressed_buckets_wait();
  const std::string clip =
      run.choice("clip", why.empty() ? "by_bucket" : "exact", {"by_bucket", "exact"});
  if (clip == "exact") config.run.clip = Clip::kExact;
  require(why.empty() || clip == "exact",
          "{} \"by_bucket\" is for buckets that leave during the backward pass, but these leave "
          "after it: {}; remove it, or ask for \"exact\"",
          run.place("clip"), why);
}

void parse_run(JsonReader run, EngineConfig& engine) {
  RunConfig& config = engine.run;
  if (run.has("steps")) config.steps = run.integer("steps", 0);
  config.checkpoint_every = run.integer("checkpoint_every", 0);
  config.evaluate_every = run.integer("evaluate_every", 0);
  config.keep_last = run.integer("keep_last", config.keep_last);
  config.seed = static_cast<uint64_t>(run.integer("seed", static_cast<int64_t>(config.seed)));
  config.max_skipped_steps = run.integer("max_skipped_steps", config.max_skipped_steps);
  config.check_replicas_every = run.integer("check_replicas_every", 0);
  config.watch_every = run.integer("watch_every", 0);
  config.watch_tensors = run.text("watch_tensors", "");
  config.watch_adam = run.boolean("watch_adam", false);
  require(!config.watch_adam || config.watch_every > 0,
          "{} compares over the steps between two looks: say how many with watch_every",
          run.place("watch_adam"));
  require(!config.watch_adam || engine.optimizer->followed_adam() != nullptr,
          "{} compares updates with Adam's, which this optimizer does not follow; remove it",
          run.place("watch_adam"));
  const double megabytes = run.number("bucket_mb", 4);
  config.overlap = run.boolean("overlap", true);
  parse_clip(run, engine);
  require(megabytes > 0 && megabytes <= 4096, "{} must lie between 0 and 4096",
          run.place("bucket_mb"));
  config.bucket_bytes = static_cast<int64_t>(megabytes * (1 << 20));
  const std::pair<const char*, int64_t> counts[] = {
      {"steps", config.steps},
      {"checkpoint_every", config.checkpoint_every},
      {"evaluate_every", config.evaluate_every},
      {"check_replicas_every", config.check_replicas_every},
      {"watch_every", config.watch_every}};
  for (const auto& [key, count] : counts) {
    require(count >= 0, "{} must not be negative", run.place(key));
  }
  require(config.keep_last >= 1, "{} must be at least 1", run.place("keep_last"));
  require(config.max_skipped_steps >= 1, "{} must be at least 1", run.place("max_skipped_steps"));
  run.finish();
}

void parse_tensorboard(JsonReader section, TensorBoardConfig& config) {
  config.enabled = section.boolean("enabled", true);
  const std::string folder = section.text("output_path", "");
  const std::string job = section.text("job_name", "");
  if (!folder.empty()) config.folder = job.empty() ? folder : folder + "/" + job;
  section.finish();
}

// DeepSpeed's keys whose behaviour onebit always has, or that steer what it does not contain.
void accept_without_effect(JsonReader& recipe, EngineConfig& config) {
  const std::pair<const char*, const char*> keys[] = {
      {"zero_allow_untested_optimizer", "there is no ZeRO here"},
      {"disable_allgather", "exchanges are always all-to-all and all-gather"},
      {"dump_state", "recipe.resolved.json in the run's folder has every value used"},
      {"memory_breakdown", "the memory table is always printed"},
      {"dataloader_drop_last", "every example is used"},
      {"vocabulary_size", "the vocabulary is padded internally"},
      {"prescale_gradients", "sums are taken in f32, where the order of scaling does not matter"},
      {"gradient_predivide_factor", "as prescale_gradients"},
      {"timers", "throughput is always measured"},
      {"steps_per_print", "the progress line is drawn by the clock"},
      {"wall_clock_breakdown", "the time of each part is always in metrics.jsonl"},
      {"activation_checkpointing", "use the model section's memory options"},
  };
  for (const auto& [key, reason] : keys) {
    if (recipe.has(key)) config.notices.push_back(fmt::format("{}: no effect, {}", key, reason));
  }
}

void refuse_checkpoint_options(JsonReader checkpoint) {
  // Validation always is as strict as "Fail".
  checkpoint.accept("tag_validation");
  checkpoint.accept("parallel_write");
  require(
      !checkpoint.boolean("use_node_local_storage", false),
      "{} is not supported: a checkpoint is one folder that all ranks see; remove it and name a "
      "shared --output",
      checkpoint.place("use_node_local_storage"));
  require(!checkpoint.boolean("load_universal", false),
          "{} is not supported: DeepSpeed's training state cannot be resumed from, its models are "
          "read by --initialize-from; remove it",
          checkpoint.place("load_universal"));
  checkpoint.finish();
}

void refuse_unsupported(JsonReader& recipe) {
  JsonReader zero = recipe.object("zero_optimization");
  require(
      zero.integer("stage", 0) == 0,
      "{} must be 0: the optimizers here keep full state on every rank (1-bit optimizers refuse "
      "ZeRO in DeepSpeed as well)",
      zero.place("stage"));
  require(!recipe.boolean("sparse_gradients", false),
          "{} is not supported: remove it, dense exchange of embeddings is compressed anyway",
          recipe.place("sparse_gradients"));
  const std::pair<const char*, const char*> switched[] = {
      {"amp", "use fp16 or bf16"},
      {"wandb", "metrics.jsonl and TensorBoard events hold every value"},
      {"comet", "metrics.jsonl and TensorBoard events hold every value"},
      {"csv_monitor", "metrics.jsonl and TensorBoard events hold every value"},
      {"flops_profiler", "the time of each part of a step is in metrics.jsonl"},
      {"progressive_layer_drop", "every layer is trained in every step"}};
  for (const auto& [key, instead] : switched) {
    const Json& section = recipe.raw(key);
    const Json enabled = section.is_object() ? section.value("enabled", Json(false)) : section;
    require(enabled == false || enabled.is_null(),
            "{} is not supported ({}): remove it or set enabled to false", recipe.place(key),
            instead);
  }
  refuse_checkpoint_options(recipe.object("checkpoint"));
  JsonReader types = recipe.object("data_types");
  types.choice("grad_accum_dtype", "fp32", {"fp32"});
  types.finish();
}

}  // namespace

std::string EngineConfig::why_compressed_buckets_wait() const {
  if (!run.overlap) return "run.overlap is false";
  if (compute == DType::kF16) return "with fp16 all ranks first agree that gradients are finite";
  if (gradient_clipping > 0 && run.clip == Clip::kExact) {
    return "run.clip \"exact\" needs the norm of the whole gradient";
  }
  return {};
}

optim::RunFacts EngineConfig::run_facts(const optim::Schedule& schedule) const {
  return {.total_steps = run.steps,
          .schedule_warmup = schedule.warmup_updates(),
          .bucket_bytes = run.bucket_bytes};
}

EngineConfig parse_engine_config(JsonReader& recipe, const std::string& place) {
  EngineConfig config;
  config.place = place;
  const auto batch_size = [&](const char* key) {
    const int64_t size = recipe.integer(key, 0);
    require(!recipe.has(key) || size > 0, "{} is {}; batch sizes must be positive",
            recipe.place(key), size);
    return size;
  };
  config.batch.train = batch_size("train_batch_size");
  config.batch.micro = batch_size("train_micro_batch_size_per_gpu");
  config.batch.accumulation = batch_size("gradient_accumulation_steps");
  config.gradient_clipping = recipe.number("gradient_clipping", 0);
  require(config.gradient_clipping >= 0, "{} must not be negative; 0 means off",
          recipe.place("gradient_clipping"));
  parse_precision(recipe, config);
  config.wire = parse_communication_type(recipe, config.compute);
  require(recipe.has("optimizer"), "{} is missing: give {{\"type\": \"AdamW\", \"params\": ...}}",
          recipe.place("optimizer"));
  config.optimizer = optim::read_optimizer(recipe.object("optimizer"));
  config.scheduler = recipe.raw("scheduler");
  parse_tensorboard(recipe.object("tensorboard"), config.tensorboard);
  parse_run(recipe.object("run"), config);
  accept_without_effect(recipe, config);
  refuse_unsupported(recipe);
  config.recipe = recipe;
  return config;
}

}  // namespace onebit::engine
