#include "onebit/program/plan/plan_json.h"

#include "onebit/ground/base/json.h"

namespace onebit::plan {
namespace {

Json to_json(const StepSeconds& step) {
  if (step.all == 0) return {};
  return {{"seconds", step.all},
          {"forward", step.forward},
          {"backward", step.backward},
          {"exchange", step.exchange},
          {"optimizer", step.optimizer}};
}

Json to_json(const Choice& choice, const PlannedRun& planned) {
  const optim::UpdateCounts& updates = planned.run.updates;
  return {{"name", choice.name},
          {"of_recipe", choice.of_recipe},
          {"memory_bytes", planned.memory_bytes},
          {"fits", planned.fits},
          {"dense_step", to_json(planned.dense)},
          {"compressed_step", to_json(planned.compressed)},
          {"local_step", to_json(planned.local)},
          {"waiting_share", planned.waiting_share},
          {"steps",
           {{"dense", updates.dense},
            {"compressed", updates.compressed},
            {"both", updates.both},
            {"local", updates.local}}},
          {"samples_per_second", planned.samples_per_second},
          {"seconds", planned.run.seconds},
          {"kilowatt_hours", planned.kilowatt_hours}};
}

Json to_json(const std::vector<Choice>& choices, const PlannedRanks& planned) {
  Json runs = Json::array();
  for (size_t i = 0; i < planned.runs.size(); ++i) {
    runs.push_back(to_json(choices[i], planned.runs[i]));
  }
  return {{"ranks", planned.cluster.ranks()},
          {"hosts", planned.cluster.hosts},
          {"ranks_per_host", planned.cluster.ranks_per_host},
          {"cannot", planned.cannot.empty() ? Json() : Json(planned.cannot)},
          {"choices", std::move(runs)}};
}

}  // namespace

Json to_json(const RunPlan& plan) {
  Json others = Json::array();
  for (const PlannedRanks& ranks : plan.others) others.push_back(to_json(plan.choices, ranks));
  return {{"kind", "plan"},
          {"recipe", plan.recipe},
          {"parameters", plan.parameters},
          {"vocabulary", plan.vocabulary},
          {"sequence_length", plan.sequence_length},
          {"layers", plan.layers},
          {"computed_layers", plan.computed_layers},
          {"steps", plan.steps},
          {"batch",
           {{"train", plan.batch.train},
            {"micro", plan.batch.micro},
            {"accumulation", plan.batch.accumulation}}},
          {"bandwidth_bytes_per_second", plan.asked.cluster.bandwidth},
          {"latency_seconds", plan.asked.cluster.latency},
          {"watts_per_host", plan.watts_per_host},
          {"host", costs::to_json(plan.machine)},
          {"plan", to_json(plan.choices, plan.asked)},
          {"others", std::move(others)},
          {"advice",
           {{"choice", plan.choices[plan.advice.choice].name},
            {"out_of_reach", plan.advice.out_of_reach},
            {"sentence", plan.advice.sentence}}}};
}

}  // namespace onebit::plan
