// When the emulated device executes its work: ONEBIT_EMULATED_CUDA_SCHEDULE.
#pragma once

#include <random>
#include <string_view>

namespace emulated_cuda {

enum class Schedule {
  kLate,    // when a call waits for it: the default
  kEager,   // immediately
  kRandom,  // at a random time, lanes, warps and blocks in any order: "random" or "random:SEED"
};

Schedule schedule();
// Sets the schedule from the variable's value. Ends the process if the value is unknown.
void set_schedule(std::string_view text);
// The generator of the random schedule and of the artificial times of events.
std::mt19937_64& dice();

}  // namespace emulated_cuda
