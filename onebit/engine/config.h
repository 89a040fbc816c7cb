// The engine's part of a recipe: DeepSpeed's top-level keys under their own names and meaning, and
// our `run` section. A DeepSpeed config loads unchanged; what it asks and onebit cannot do is an
// error that names the key, never ignored.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "onebit/base/keys.h"
#include "onebit/engine/batch_sizes.h"
#include "onebit/optim/loss_scaler.h"
#include "onebit/optim/optimizer_recipe.h"
#include "onebit/optim/schedule.h"
#include "onebit/tensor/dtype.h"

namespace onebit::engine {

// How gradients that are not averaged are clipped (the compressed phase).
enum class Clip {
  kByBucket,  // each bucket as it leaves, at its usual share of the norm (optim/norm_shares.h)
  kExact      // all by the norm of the whole, which is known after the backward pass
};

// What the compressed phase exchanges with whom (optim/levels.h).
enum class LevelsWanted {
  kOne,    // every rank with every other one
  kTwo,    // nodes with each other, after the ranks of each have averaged theirs
  kEither  // two where the hosts of the ranks allow it
};

// The transport between CUDA devices that is asked for.
struct TransportRequest {
  std::string backend;      // "nccl", "mpi"; empty: either
  bool cuda_aware = false;  // MPI takes device memory
};

// The section `run`.
struct RunConfig {
  int64_t steps = 0;  // updates in the whole run
  uint64_t seed = 42;
  int64_t max_skipped_steps = 20;  // in a row, before the run stops with a diagnosis
  int64_t watch_every = 0;         // measure what an update does to the values (update_watch.h)
  bool watch_adam = false;         // and compare the updates with Adam's (adam_shadow.h)
  std::string watch_tensors;       // and the magnitude of the tensors whose name contains this
  int64_t bucket_bytes = int64_t{4} << 20;
  bool overlap = true;  // exchange buckets while the backward pass still runs
  Clip clip = Clip::kExact;
  LevelsWanted levels = LevelsWanted::kOne;
};

struct EngineConfig {
  BatchSizes batch;  // as given; solved against the world size by the engine
  DType compute = DType::kF32;
  DType wire = DType::kF32;  // communication_data_type: of dense exchanges; default: as compute
  double gradient_clipping = 0;
  optim::LossScalerOptions loss_scale{.static_scale = 1};
  std::shared_ptr<const optim::OptimizerRecipe> optimizer;
  TransportRequest transport;
  RunConfig run;
  Keys recipe;        // all of it, with what was read from it
  std::string place;  // the recipe's path, for errors

  // Why the buckets of the compressed phase leave after the backward pass: what multiplies their
  // gradients is known only then. Empty: they leave during it.
  std::string why_compressed_buckets_wait() const;
  // What the optimizer knows of the run.
  optim::RunFacts run_facts(const optim::Schedule& schedule) const;
};

// DeepSpeed's keys that only some models can honour. The others' are refused here; a caller whose
// model can lists them.
struct ModelKeys {
  bool progressive_layer_drop = false;
};

// Lists the engine's keys of a recipe; the caller lists `model`, `data` and others (a session its
// own, training/session_config.h), and then asks `recipe` for what is wrong. Until that is nothing,
// the optimizer may be null.
EngineConfig parse_engine_config(Keys& recipe, const ModelKeys& listed_by_caller = {});

// What the recipe asks of the transport between devices. What is wrong in it is left to the parser
// of its task.
TransportRequest requested_transport(const Json& recipe, const std::string& place);

}  // namespace onebit::engine
