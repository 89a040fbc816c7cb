// The nodes of the ranks: ranks of one node share a machine. Links inside a node are fast. An
// exchange on two levels compresses the traffic between nodes.
#pragma once

#include <span>
#include <vector>

namespace onebit::comm {

class Nodes {
 public:
  Nodes() = default;  // of no ranks
  // Takes the node of each rank as any number. Nodes are renumbered in the order of first ranks.
  explicit Nodes(const std::vector<int>& node_of_rank);
  // `ranks` on one node, or in groups of `ranks_per_node`, where the last one may be smaller.
  static Nodes one(int ranks) { return Nodes(std::vector<int>(static_cast<size_t>(ranks), 0)); }
  static Nodes groups(int ranks, int ranks_per_node);

  int ranks() const { return static_cast<int>(node_of_.size()); }
  int count() const { return static_cast<int>(ranks_of_.size()); }
  int node_of(int rank) const { return node_of_[static_cast<size_t>(rank)]; }
  // The ranks of a node in ascending order, and the place of a rank among the ranks of its node.
  std::span<const int> ranks_of(int node) const { return ranks_of_[static_cast<size_t>(node)]; }
  int local_of(int rank) const;
  // Whether all nodes have the same number of ranks, and the number of ranks of the first node.
  bool even() const;
  int ranks_per_node() const { return static_cast<int>(ranks_of_.front().size()); }
  // The nodes of a subset of the ranks, which are then numbered in the order given.
  Nodes of(std::span<const int> ranks) const;

  // The argument of the constructor, renumbered.
  const std::vector<int>& node_of_rank() const { return node_of_; }
  bool operator==(const Nodes&) const = default;

 private:
  std::vector<int> node_of_;                // [ranks]
  std::vector<std::vector<int>> ranks_of_;  // [nodes]
};

}  // namespace onebit::comm
