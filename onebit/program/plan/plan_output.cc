#include "onebit/program/plan/plan_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "onebit/ground/base/json.h"
#include "onebit/ground/base/wording.h"
#include "onebit/ground/metrics/chart.h"
#include "onebit/ground/metrics/curve_plot.h"
#include "onebit/ground/metrics/human.h"
#include "onebit/ground/metrics/text_table.h"
#include "onebit/program/plan/quantity.h"

namespace onebit::plan {

namespace {

using metrics::human_bytes;
using metrics::human_count;
using metrics::human_duration;

std::string bytes(int64_t count) {
  return human_bytes(static_cast<double>(count));
}

std::string rate(double a_second) {
  return a_second < 100 ? fmt::format("{:.3g}", a_second) : human_count(std::round(a_second));
}

std::string energy(double kilowatt_hours) {
  if (kilowatt_hours < 1) return fmt::format("{:.3g} Wh", kilowatt_hours * 1000);
  return kilowatt_hours < 1000 ? fmt::format("{:.3g} kWh", kilowatt_hours)
                               : fmt::format("{:.3g} MWh", kilowatt_hours / 1000);
}

std::string facts(const RunPlan& plan, const std::string& measured) {
  const PlannedCluster& cluster = plan.asked.cluster;
  metrics::TextTable table;
  table.add_row(
      {"recipe", fmt::format("{}: {} parameters, {} steps of {} sequences of {} tokens",
                             plan.recipe, human_count(static_cast<double>(plan.parameters)),
                             plan.steps, plan.samples, plan.sequence_length)});
  table.add_row(
      {"vocabulary",
       fmt::format(
           "{} tokens; a run without --initialize-from uses that of its data, which changes its "
           "parameters",
           plan.vocabulary)});
  if (plan.computed_layers < static_cast<double>(plan.layers)) {
    table.add_row({"layer drop", fmt::format("a pass computes {:.2f} of {} layers, on average",
                                             plan.computed_layers, plan.layers)});
  }
  table.add_row(
      {"cluster",
       fmt::format("{} with {} each: {}, links of {}/s, latency {}", counted(cluster.hosts, "host"),
                   counted(cluster.ranks_per_host, "rank"), counted(cluster.ranks(), "rank"),
                   human_bytes(cluster.bandwidth), human_duration(cluster.latency))});
  table.add_row({"host", fmt::format("{}, {}, {} of memory, {}", plan.machine.processor,
                                     counted(plan.machine.threads, "thread"),
                                     bytes(plan.machine.memory_bytes), measured)});
  table.add_row({"batch", fmt::format("{} = {}", plan.batch.train,
                                      engine::describe_shares(plan.batch, cluster.ranks()))});
  table.add_row({"power", fmt::format("{:g} W per host, assumed (--watts)", plan.watts_per_host)});
  return table.text();
}

std::string name_of_choice(const Choice& choice) {
  return choice.name + (choice.of_recipe ? " (the recipe)" : "");
}

std::string runs(const RunPlan& plan) {
  metrics::TextTable table(
      {"exchange", "memory per rank", "samples/s", "time to the end", "energy"});
  table.align_right({1, 2, 3, 4});
  for (size_t i = 0; i < plan.choices.size(); ++i) {
    const PlannedRun& run = plan.asked.runs[i];
    table.add_row(
        {name_of_choice(plan.choices[i]), bytes(run.memory_bytes) + (run.fits ? "" : ", too much"),
         rate(run.samples_per_second), long_duration(run.run.seconds), energy(run.kilowatt_hours)});
  }
  return table.text();
}

void add_step(metrics::TextTable& table, const std::string& name, int64_t steps,
              const StepSeconds& step) {
  if (steps == 0) return;
  table.add_row({name, std::to_string(steps), human_duration(step.all),
                 human_duration(step.forward), human_duration(step.backward),
                 human_duration(step.exchange), human_duration(step.optimizer)});
}

std::string steps(const RunPlan& plan) {
  metrics::TextTable table(
      {"step", "steps", "total", "forward", "backward", "exchange, added", "optimizer"});
  table.align_right({1, 2, 3, 4, 5, 6});
  for (size_t i = 0; i < plan.choices.size(); ++i) {
    const std::string& name = plan.choices[i].name;
    const PlannedRun& run = plan.asked.runs[i];
    const optim::UpdateCounts& updates = run.run.updates;
    const bool mixed = updates.all() > updates.dense;
    add_step(table, mixed ? name + ", averages" : name, updates.dense + updates.both, run.dense);
    add_step(table, name + ", one bit", updates.compressed, run.compressed);
    add_step(table, name + ", local", updates.local, run.local);
  }
  return table.text();
}

// The reason why the recipe cannot run on the listed numbers of ranks.
std::string describe_misfit(const engine::BatchSizes& given, int ranks, const std::string& listed) {
  if (given.train < ranks) {
    return fmt::format("a step of {} leaves some of {} ranks without a sequence\n",
                       counted(given.train, "sequence"), listed);
  }
  if (given.micro > 0 && !given.uneven && given.train < given.micro * ranks) {
    return fmt::format("a step of {} has no micro-batch of {} for each of {} ranks\n",
                       counted(given.train, "sequence"), given.micro, listed);
  }
  return fmt::format("the batch does not divide among {} ranks\n", listed);
}

// One line for each reason.
std::string misfits(const RunPlan& plan) {
  std::vector<std::pair<std::string, std::vector<int>>> reasons;
  for (const PlannedRanks& planned : plan.others) {
    if (planned.cannot.empty()) continue;
    const int ranks = planned.cluster.ranks();
    const std::string reason = describe_misfit(plan.given_batch, ranks, "");
    if (reasons.empty() || reasons.back().first != reason) reasons.push_back({reason, {}});
    reasons.back().second.push_back(ranks);
  }
  std::string text;
  for (const auto& [reason, ranks] : reasons) {
    text +=
        describe_misfit(plan.given_batch, ranks.front(), fmt::format("{}", fmt::join(ranks, ", ")));
  }
  return text;
}

std::string other_ranks(const RunPlan& plan) {
  std::vector<std::string> header{"ranks", "hosts"};
  for (const Choice& choice : plan.choices) header.push_back(choice.name);
  header.emplace_back("memory per rank");
  metrics::TextTable table(header);
  table.align_right({0, 1, 2, 3, 4, 5, 6});
  for (const PlannedRanks& ranks : plan.others) {
    if (!ranks.cannot.empty()) continue;
    std::vector<std::string> row{std::to_string(ranks.cluster.ranks()),
                                 std::to_string(ranks.cluster.hosts)};
    int64_t most = 0;
    for (const PlannedRun& run : ranks.runs) {
      row.push_back(long_duration(run.run.seconds));
      most = std::max(most, run.memory_bytes);
    }
    row.push_back("up to " + bytes(most));
    table.add_row(row);
  }
  return table.text() + misfits(plan);
}

std::string curves(const RunPlan& plan) {
  std::vector<metrics::Curve> drawn;
  for (size_t i = 0; i < plan.choices.size(); ++i) {
    metrics::Curve curve{.name = plan.choices[i].name, .points = {}};
    for (const PlannedRanks& ranks : plan.others) {
      if (ranks.runs.empty()) continue;
      const double count = ranks.cluster.ranks();
      curve.points.emplace_back(std::log2(count), ranks.runs[i].samples_per_second / count);
    }
    drawn.push_back(std::move(curve));
  }
  return metrics::draw_curves(
      drawn, {.x_label = "ranks: 2 to the power of", .width = 72, .height = 12, .color = false});
}

}  // namespace

std::string plan_text(const RunPlan& plan, const std::string& measured) {
  return facts(plan, measured) + "\nThe run\n" + runs(plan) + "\nA step by its parts\n" +
         steps(plan) + "\nOther numbers of ranks, time to the end\n" + other_ranks(plan) +
         "\nSamples/s per rank\n" + curves(plan) + "\n" + plan.advice.sentence + "\n";
}

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

std::string plan_picture(const RunPlan& plan) {
  metrics::Chart chart{.title = "samples per second, " + plan.recipe,
                       .unit = "",
                       .lines = {},
                       .phases = {},
                       .logarithmic = true,
                       .x_name = "ranks",
                       .powers_of_two = true};
  for (size_t i = 0; i < plan.choices.size(); ++i) {
    metrics::Line line{
        .name = plan.choices[i].name, .points = {}, .colour = static_cast<int>(i), .dots = true};
    for (const PlannedRanks& ranks : plan.others) {
      if (ranks.runs.empty()) continue;
      line.points.push_back({std::log2(static_cast<double>(ranks.cluster.ranks())),
                             ranks.runs[i].samples_per_second});
    }
    chart.lines.push_back(std::move(line));
  }
  return metrics::draw_file(chart);
}

}  // namespace onebit::plan
