// The declared state of the optimizers: the table of docs/checkpoint-format.md, and what they save.
#include "onebit/exchange/optim/state_layout.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "onebit/ground/base/file.h"
#include "tests/optim/optimizer_table.h"
#include "tests/optim/trial.h"

namespace onebit::optim {
namespace {

using Buffers = std::set<std::pair<std::string, std::string>>;  // name, number of elements

// The number of elements, as the document writes it.
std::string elements_of(const StateBuffer& buffer) {
  switch (buffer.extent) {
    case Extent::kWhole:
      return "n";
    case Extent::kShare:
      return "n on each rank";
    case Extent::kOwned:
      return "o(R)";
    case Extent::kShareBlocks:
      return (buffer.numbers == 1 ? "" : std::to_string(buffer.numbers) + " ") + "b on each rank";
    case Extent::kBlockGroups:
      return "ceil(b / 16)";
    default:
      return "none that is saved";
  }
}

StateLayout layout_of(const OptimizerRecipe& recipe, const ParameterTable& table, int ranks) {
  return recipe.state_layout(
      table, {{.buckets = comm::Buckets(table.size_elements(), 16384), .world_size = ranks}});
}

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

TEST(StateLayout, IsTheTableOfTheDocument) {
  ParameterTable table;
  table.add({.name = "weight", .shape = {100000}});
  Buffers declared, documented;
  for (const Row& row : optimizer_table()) {
    for (const int ranks : {1, 2}) {
      for (const StateBuffer& buffer : layout_of(*row.optimizer, table, ranks)) {
        if (buffer.kept == Kept::kScratch) continue;
        const char* prefix = buffer.kept == Kept::kOwn ? "own." : "replicated.";
        declared.emplace(prefix + std::string(buffer.name), elements_of(buffer));
      }
    }
  }
  std::istringstream lines(read_file(ONEBIT_SOURCE_DIR "/docs/checkpoint-format.md"));
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> cells = parts_of(line, '|');  // empty before and after the row
    if (cells.size() != 6) continue;
    const std::string elements = cells[3].substr(1, cells[3].size() - 2);
    // Every second part is in backticks.
    const std::vector<std::string> names = parts_of(cells[2], '`');
    for (size_t i = 1; i < names.size(); i += 2) {
      if (names[i].starts_with("own.") || names[i].starts_with("replicated.")) {
        documented.emplace(names[i], elements);
      }
    }
  }
  EXPECT_EQ(documented, declared);
}

struct SavedSizes {
  std::set<std::string> names;
  int64_t bytes = 0;      // of all ranks
  int64_t announced = 0;  // Optimizer::saved_bytes()
};

SavedSizes sizes_after(int steps, int ranks, const TrialOptions& options) {
  const auto states = on_ranks(ranks, options, [&](Trial& trial) {
    trial.steps(steps);
    return std::pair(trial.save(), trial.optimizer().saved_bytes(trial.optimizer().phase()));
  });
  SavedSizes saved{.names = {}, .announced = states[0].second};
  const auto add = [&](const auto& buffers) {
    for (const auto& [name, buffer] : buffers) {
      saved.names.insert(name);
      saved.bytes += static_cast<int64_t>(buffer.size() * sizeof(float));
    }
  };
  add(states[0].first.replicated_buffers);
  for (const auto& [state, announced] : states) add(state.own_buffers);
  return saved;
}

TEST(StateLayout, AnnouncesWhatOptimizersSave) {
  struct Ranks {
    int count;
    std::vector<int> nodes;
  };
  for (const Ranks& ranks : {Ranks{1, {}}, Ranks{2, {}}, Ranks{3, {}}, Ranks{4, {0, 0, 1, 1}}}) {
    for (const Row& row : optimizer_table()) {
      for (const int steps : {2, 14, 15}) {
        TrialOptions options{.optimizer = row.optimizer};
        if (!ranks.nodes.empty()) options = on_two_levels(options, ranks.nodes);
        const SavedSizes saved = sizes_after(steps, ranks.count, options);
        // After an exchange 0/1 Adam saves one momentum instead of three buffers of each rank.
        const bool exchanged = saved.names.contains("arrived") && !saved.names.contains("sum");
        if (exchanged) {
          EXPECT_LT(saved.bytes, saved.announced) << row.name << ", step " << steps;
        } else {
          EXPECT_EQ(saved.bytes, saved.announced)
              << row.name << " on " << ranks.count << ", step " << steps;
        }
      }
    }
  }
}

}  // namespace
}  // namespace onebit::optim
