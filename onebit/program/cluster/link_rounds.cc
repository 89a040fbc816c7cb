#include "onebit/program/cluster/link_rounds.h"

namespace onebit::cluster {

// All but the last sit in a circle and move by one seat per round; those opposite each other are
// partners. If the number is odd, the one that meets the missing seat rests.
std::vector<std::vector<std::pair<int, int>>> rounds_of_pairs(int count) {
  const int seats = count + count % 2, circle = seats - 1;
  std::vector<std::vector<std::pair<int, int>>> rounds;
  for (int round = 0; round < circle; ++round) {
    std::vector<std::pair<int, int>>& pairs = rounds.emplace_back();
    const auto add = [&](int one, int other) {
      if (one < count && other < count) pairs.emplace_back(one, other);
    };
    add(round, circle);
    for (int i = 1; i < seats / 2; ++i) {
      add((round + i) % circle, (round + circle - i) % circle);
    }
  }
  return rounds;
}

}  // namespace onebit::cluster
