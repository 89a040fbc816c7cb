// Pairs of hosts in rounds, as in a tournament: a host has one partner at a time.
#pragma once

#include <utility>
#include <vector>

namespace onebit::cluster {

// Every pair of numbers below `count` once.
std::vector<std::vector<std::pair<int, int>>> rounds_of_pairs(int count);

}  // namespace onebit::cluster
