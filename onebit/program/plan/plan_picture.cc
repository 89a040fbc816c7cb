#include "onebit/program/plan/plan_picture.h"

#include <cmath>

#include "onebit/ground/metrics/chart.h"

namespace onebit::plan {

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
