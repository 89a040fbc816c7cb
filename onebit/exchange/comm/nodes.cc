#include "onebit/exchange/comm/nodes.h"

#include <algorithm>
#include <map>

#include "onebit/ground/base/error.h"

namespace onebit::comm {

Nodes::Nodes(const std::vector<int>& node_of_rank) {
  std::map<int, int> numbers;
  for (size_t rank = 0; rank < node_of_rank.size(); ++rank) {
    const int next = static_cast<int>(numbers.size());
    const int node = numbers.try_emplace(node_of_rank[rank], next).first->second;
    if (node == next) ranks_of_.emplace_back();
    node_of_.push_back(node);
    ranks_of_[static_cast<size_t>(node)].push_back(static_cast<int>(rank));
  }
}

Nodes Nodes::groups(int ranks, int ranks_per_node) {
  ONEBIT_INVARIANT(ranks_per_node >= 1);
  std::vector<int> node_of_rank;
  for (int rank = 0; rank < ranks; ++rank) node_of_rank.push_back(rank / ranks_per_node);
  return Nodes(node_of_rank);
}

int Nodes::local_of(int rank) const {
  const std::span<const int> ranks = ranks_of(node_of(rank));
  return static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
}

bool Nodes::even() const {
  return std::all_of(ranks_of_.begin(), ranks_of_.end(), [&](const std::vector<int>& ranks) {
    return ranks.size() == ranks_of_.front().size();
  });
}

Nodes Nodes::of(std::span<const int> ranks) const {
  std::vector<int> node_of_rank;
  for (const int rank : ranks) node_of_rank.push_back(node_of(rank));
  return Nodes(node_of_rank);
}

}  // namespace onebit::comm
