// Pairs of hosts in rounds, as players of a tournament: nobody has two partners at a time.
#pragma once

#include <utility>
#include <vector>

namespace onebit::cluster {

// Every pair of the numbers below `count` once.
std::vector<std::vector<std::pair<int, int>>> rounds_of_pairs(int count);

}  // namespace onebit::cluster
