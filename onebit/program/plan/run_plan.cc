#include "onebit/program/plan/run_plan.h"

#include <algorithm>

#include "onebit/exchange/engine/batch_sizes.h"
#include "onebit/exchange/engine/packed_matrices.h"
#include "onebit/math/model/memory_report.h"
#include "onebit/math/model/pretraining_model.h"
#include "onebit/program/plan/advice.h"
#include "onebit/training/training/run_folder.h"

namespace onebit::plan {
namespace {

constexpr int kMaxRanks = 1024;

StepSeconds parts_of(const costs::StepPrediction& step, const costs::PassTimes& pass,
                     int64_t accumulation, double optimizer_seconds) {
  const auto passes = static_cast<double>(accumulation);
  StepSeconds parts{.all = step.step_seconds,
                    .forward = passes * pass.forward_seconds,
                    .backward = passes * pass.backward_seconds,
                    .optimizer = optimizer_seconds};
  const double beside = parts.all - parts.forward - parts.backward - parts.optimizer;
  constexpr double kRounding = 1e-9;  // relative to the sum
  parts.exchange = beside > kRounding * parts.all ? beside : 0;
  return parts;
}

// `onebit recipe check` shows the schedule's warnings.
std::unique_ptr<optim::Schedule> schedule_of(const engine::EngineConfig& config) {
  std::vector<std::string> warnings;
  return config.scheduler.make(config.run.steps, warnings);
}

// One recipe on one machine, on any number of ranks.
class Planner {
 public:
  Planner(Context& context, const pretrain::PretrainingConfig& config,
          const costs::MachineCosts& machine, const PlanRequest& request)
      : config_(config),
        machine_(machine),
        request_(request),
        model_(config.model, table_, config.data.heads()),
        work_(count_work(context, config, product_type(machine, config.engine.compute))),
        schedule_(schedule_of(config.engine)),
        facts_(config.engine.run_facts(*schedule_)),
        choices_(choices_of(config.engine, facts_)) {}

  const std::vector<Choice>& choices() const { return choices_; }
  int64_t parameters() const { return table_.parameter_count(); }

  // Error: the batch does not divide.
  PlannedRanks on(const PlannedCluster& cluster) const {
    PlannedRanks planned{.cluster = cluster, .cannot = {}, .runs = {}};
    const engine::BatchSizes batch =
        engine::solve_batch_sizes(config_.engine.batch, cluster.ranks(), config_.engine.place);
    for (const Choice& choice : choices_) planned.runs.push_back(run(choice, cluster, batch));
    return planned;
  }

  PlannedRanks if_it_runs(const PlannedCluster& cluster) const {
    try {
      return on(cluster);
    } catch (const Error& error) {
      return {.cluster = cluster, .cannot = error.what(), .runs = {}};
    }
  }

 private:
  int64_t memory_bytes(const Choice& choice, int ranks, const engine::BatchSizes& batch) const {
    const bool packs = config_.engine.packs_weights(
        batch.accumulation, machine_.bf16.has_value() && machine_.bf16_gains_from_copies);
    return model::total_bytes(model::memory_report(config_.model, config_.limits(batch.micro),
                                                   config_.memory, config_.engine.compute,
                                                   config_.data.heads())) +
           (packs ? engine::PackedMatrices::bytes(table_, config_.engine.compute) : 0) +
           choice.optimizer->state_bytes(table_, ranks, facts_) +
           training::checkpoint_copy_bytes(
               table_, choice.optimizer->most_saved_bytes(table_, ranks, facts_), ranks, true);
  }

  PlannedRun run(const Choice& choice, const PlannedCluster& cluster,
                 const engine::BatchSizes& batch) const {
    const PlannedStep step{work_, machine_, table_, config_.engine};
    const costs::ExchangeBuckets buckets =
        costs::exchange_buckets(table_, config_.engine, cluster.ranks());
    const costs::StepCosts costs = planned_costs(step, cluster, choice.wire, batch.micro, buckets);
    const costs::StepForecast steps =
        costs::forecast(costs, buckets, config_.engine, batch.accumulation);
    const int64_t updates = config_.engine.run.steps;
    PlannedRun planned{
        .memory_bytes = memory_bytes(choice, cluster.ranks(), batch),
        .run = costs::forecast_run(*choice.optimizer, facts_, steps, cluster.ranks(), 0, updates),
        .dense = parts_of(steps.dense, costs.pass, batch.accumulation, costs.update_seconds),
        .compressed = parts_of(steps.compressed, costs.pass, batch.accumulation,
                               costs.compressed_update_seconds),
        .local =
            parts_of(steps.local, costs.pass, batch.accumulation, costs.compressed_update_seconds),
        .waiting_share = steps.dense.waiting_seconds / steps.dense.step_seconds};
    planned.fits = planned.memory_bytes * cluster.ranks_per_host <= machine_.memory_bytes;
    const optim::UpdateCounts& kinds = planned.run.updates;
    if (kinds.compressed + kinds.both == 0) planned.compressed = {};
    if (kinds.local == 0) planned.local = {};
    planned.samples_per_second =
        static_cast<double>(updates) * static_cast<double>(batch.train) / planned.run.seconds;
    planned.kilowatt_hours = request_.watts_per_host * cluster.hosts * planned.run.seconds / 3.6e6;
    return planned;
  }

  const pretrain::PretrainingConfig& config_;
  const costs::MachineCosts& machine_;
  const PlanRequest& request_;
  ParameterTable table_;  // declared, never allocated
  model::PreTrainingModel model_;
  RecipeWork work_;
  std::unique_ptr<optim::Schedule> schedule_;
  optim::RunFacts facts_;
  std::vector<Choice> choices_;
};

// First a single host with fewer ranks, then full hosts. The number doubles each time.
std::vector<PlannedCluster> clusters_like(const PlannedCluster& asked) {
  std::vector<PlannedCluster> clusters;
  PlannedCluster cluster = asked;
  for (int ranks = 1; ranks < asked.host_parts && ranks <= kMaxRanks; ranks *= 2) {
    cluster.hosts = 1;
    cluster.ranks_per_host = ranks;
    clusters.push_back(cluster);
  }
  cluster.ranks_per_host = asked.host_parts;
  for (int hosts = 1; hosts * asked.host_parts <= kMaxRanks; hosts *= 2) {
    cluster.hosts = hosts;
    clusters.push_back(cluster);
  }
  return clusters;
}

}  // namespace

RunPlan make_plan(Context& context, const pretrain::PretrainingConfig& config,
                  const costs::MachineCosts& machine, const PlanRequest& request) {
  PlannedCluster asked = request.cluster;
  asked.copy_bytes_per_second = machine.copy_bytes_per_second;
  require(asked.host_parts <= machine.threads,
          "{} ranks per host need a thread each, but the measured host has {}: give fewer "
          "--ranks-per-host, or the measurement of another host (--measured)",
          asked.host_parts, machine.threads);
  const engine::BatchSizes batch =
      engine::solve_batch_sizes(config.engine.batch, asked.ranks(), config.engine.place);
  const Planner planner(context, config, machine, request);
  RunPlan plan{.recipe = config.engine.place,
               .parameters = planner.parameters(),
               .steps = config.engine.run.steps,
               .samples = batch.train,
               .batch = batch,
               .given_batch = config.engine.batch,
               .sequence_length = config.data.pairs.sequence_length,
               .vocabulary = config.model.vocab_size,
               .layers = config.model.layers,
               .computed_layers = config.drop().mean_layers(0, config.engine.run.steps),
               .watts_per_host = request.watts_per_host,
               .machine = machine,
               .choices = planner.choices(),
               .asked = planner.on(asked),
               .others = {},
               .advice = {}};
  for (const PlannedCluster& cluster : clusters_like(asked)) {
    plan.others.push_back(planner.if_it_runs(cluster));
  }
  plan.advice = advise(plan);
  return plan;
}

}  // namespace onebit::plan
