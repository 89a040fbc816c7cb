// Which ranks share a machine: a node. Links inside a node are fast; those between nodes carry what
// is compressed where an exchange has two levels.
#pragma once

#include <span>
#include <vector>

namespace onebit::comm {

class Nodes {
 public:
  Nodes() = default;  // of no ranks
  // The node of each rank as any numbers; they are numbered anew in the order of their first ranks.
  explicit Nodes(const std::vector<int>& node_of_rank);
  // `ranks` on one node; in groups of `ranks_a_node`, of which the last may be smaller.
  static Nodes one(int ranks) { return Nodes(std::vector<int>(static_cast<size_t>(ranks), 0)); }
  static Nodes groups(int ranks, int ranks_a_node);

  int ranks() const { return static_cast<int>(node_of_.size()); }
  int count() const { return static_cast<int>(ranks_of_.size()); }
  int node_of(int rank) const { return node_of_[static_cast<size_t>(rank)]; }
  // The ranks of a node in rising order, and the place of a rank among those of its own.
  std::span<const int> ranks_of(int node) const { return ranks_of_[static_cast<size_t>(node)]; }
  int local_of(int rank) const;
  // Whether all nodes have as many ranks, and how many the first has.
  bool even() const;
  int ranks_a_node() const { return static_cast<int>(ranks_of_.front().size()); }
  // Of some of the ranks, which are then numbered in the order given.
  Nodes of(std::span<const int> ranks) const;

  // As given to the constructor, numbered anew.
  const std::vector<int>& node_of_rank() const { return node_of_; }
  bool operator==(const Nodes&) const = default;

 private:
  std::vector<int> node_of_;                // [ranks]
  std::vector<std::vector<int>> ranks_of_;  // [nodes]
};

}  // namespace onebit::comm
