// The engine's part of a recipe: DeepSpeed's top-level keys with their names and meaning, and our
// `run` section. A DeepSpeed config loads unchanged. A request that onebit cannot fulfil is an
// error that names the key, never ignored.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "onebit/exchange/engine/batch_sizes.h"
#include "onebit/exchange/optim/loss_scaler.h"
#include "onebit/exchange/optim/optimizer_recipe.h"
#include "onebit/exchange/optim/schedule.h"
#include "onebit/ground/base/dtype.h"
#include "onebit/ground/recipe/keys.h"
#include "onebit/math/device/device.h"

namespace onebit::engine {

// How gradients that are not averaged are clipped (the compressed phase).
enum class Clip {
  kByBucket,  // each bucket when it is sent, at its usual share of the norm (optim/gradient_clipper.h)
  kExact      // all by the norm of the whole, which is known after the backward pass
};

// Which ranks exchange what in the compressed phase (optim/topology.h).
enum class LevelsWanted {
  kOne,    // every rank exchanges with every other one
  kTwo,    // nodes exchange with each other, after the ranks of each have averaged theirs
  kEither  // two if the hosts of the ranks allow it
};

// The requested transport between CUDA devices.
struct TransportRequest {
  std::string backend;      // "nccl", "mpi", "tcp". Empty: any
  bool cuda_aware = false;  // MPI receives device pointers
};

// The section `run`.
struct RunConfig {
  int64_t steps = 0;  // updates in the whole run
  uint64_t seed = 42;
  int64_t max_skipped_steps = 20;  // in a row, before the run stops with a diagnosis
  int64_t watch_every = 0;         // measure what an update does to the values (update_watch.h)
  bool watch_adam = false;         // also compare the updates with Adam's (update_watch.h)
  std::string watch_tensors;       // also watch the magnitude of tensors whose name contains this
  int64_t bucket_bytes = int64_t{4} << 20;
  bool overlap = true;  // exchange buckets while the backward pass still runs
  Clip clip = Clip::kExact;
  LevelsWanted levels = LevelsWanted::kOne;
  bool tf32 = false;         // f32 products on CUDA devices round their operands to tf32
  bool pack_weights = true;  // keep copies in the layout of the products (packed_matrices.h)
};

struct EngineConfig {
  BatchSizes batch;  // as given. The engine solves them for the world size
  DType compute = DType::kF32;
  DType wire = DType::kF32;  // communication_data_type: of dense exchanges. Default: as compute
  double gradient_clipping = 0;
  optim::LossScalerOptions loss_scale{.static_scale = 1};
  std::shared_ptr<const optim::OptimizerRecipe> optimizer;
  optim::ScheduleOptions scheduler;
  TransportRequest transport;
  RunConfig run;
  Keys recipe;        // the whole recipe, with the values read from it
  std::string place;  // the recipe's path, for errors

  // Why the buckets of the compressed phase are sent after the backward pass: the factor of their
  // gradients is known only then. Empty: they are sent during it.
  std::string why_compressed_buckets_wait() const;
  // Whether steps of `accumulation` micro-batches use packed copies of the matrices, on a machine
  // whose products of bf16 gain from them (ops::bf16_gains_from_copies) or not.
  bool packs_weights(int64_t accumulation, bool bf16_gains) const;
  // What an optimizer needs to know about the run.
  optim::RunFacts run_facts(const optim::Schedule& schedule) const;
};

// DeepSpeed's keys that only some models can honour. The others are rejected here. A caller whose
// model supports them can list them.
struct ModelKeys {
  bool progressive_layer_drop = false;
};

// Lists the engine's keys of a recipe. The caller lists `model`, `data` and other keys (a session
// lists its own: training/session_config.h). Then it checks `recipe` for errors. Until this check
// the optimizer may be null.
EngineConfig parse_engine_config(Keys& recipe, const ModelKeys& listed_by_caller = {});

// The recipe with what `bf16.enabled` "auto" means on a device: true on CUDA devices, false on CPUs
// and beside fp16. Where no device is known, for example in a plan, "auto" counts as false.
Json for_device(Json recipe, Device device);

}  // namespace onebit::engine
