// When the emulated device does what it was given: ONEBIT_EMULATED_CUDA_SCHEDULE.
#pragma once

#include <random>
#include <string_view>

namespace emulated_cuda {

enum class Schedule {
  kLate,    // when somebody waits for it: the default
  kEager,   // at once
  kRandom,  // some time between, lanes, warps and blocks in any order: "random" or "random:SEED"
};

Schedule schedule();
// What the environment variable says. Ends the process if it says nothing known.
void set_schedule(std::string_view text);
// Of the random schedule, and of the made-up times of events.
std::mt19937_64& dice();

}  // namespace emulated_cuda
