#include "onebit/exchange/engine/levels_choice.h"

#include <algorithm>

#include "onebit/exchange/comm/bucket.h"
#include "onebit/ground/base/error.h"

namespace onebit::engine {
namespace {

// Why two levels are impossible. Empty: they are possible.
std::string obstacle(const comm::Nodes& nodes, int64_t elements) {
  if (nodes.count() == 1) {
    return fmt::format("all ranks ({}) are on one node", nodes.ranks());
  }
  for (int node = 1; node < nodes.count(); ++node) {
    const std::span<const int> ranks = nodes.ranks_of(node);
    const auto first = static_cast<size_t>(nodes.ranks_per_node());
    if (ranks.size() == first) continue;
    return fmt::format(
        "nodes have different numbers of ranks: the node of rank 0 has {}, the node of rank {} has "
        "{}",
        first, ranks.front(), ranks.size());
  }
  if (nodes.ranks_per_node() == 1) {
    return fmt::format("each of the {} nodes has one rank", nodes.count());
  }
  const int64_t blocks = comm::blocks_in(elements);
  if (blocks < nodes.ranks_per_node()) {
    return fmt::format("{} parameters are too few to divide among {} ranks of a node", elements,
                       nodes.ranks_per_node());
  }
  return {};
}

}  // namespace

LevelsChoice choose_levels(const EngineConfig& config, const comm::Nodes& nodes, int64_t elements) {
  if (config.run.levels == LevelsWanted::kOne || !config.optimizer->compresses()) return {};
  const std::string why_not = obstacle(nodes, elements);
  const bool wanted = config.run.levels == LevelsWanted::kTwo;
  require(!wanted || why_not.empty(),
          "{}: `run.levels` is \"two\", but {}: start the same number of ranks on each of at least "
          "two hosts (two or more, but no more than the model can be divided among), or set it to "
          "\"one\" or \"auto\" (a run that may continue on fewer hosts needs one of these)",
          config.place, why_not);
  if (!why_not.empty()) return {.text = fmt::format("one (run.levels \"auto\"): {}", why_not)};
  return {
      .two = true,
      .text = fmt::format("two: {} nodes of {} ranks; the compressed phase uses exact means inside "
                          "a node and one bit per element between nodes",
                          nodes.count(), nodes.ranks_per_node())};
}

}  // namespace onebit::engine
