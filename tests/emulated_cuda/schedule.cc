#include "tests/emulated_cuda/schedule.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace emulated_cuda {
namespace {

struct Chosen {
  Schedule schedule = Schedule::kLate;
  std::mt19937_64 dice{1};

  Chosen() {
    const char* const text = std::getenv("ONEBIT_EMULATED_CUDA_SCHEDULE");
    set(text == nullptr ? "late" : text);
  }
  void set(std::string_view text) {
    constexpr std::string_view kRandom = "random";
    if (text == "late" || text == "eager") {
      schedule = text == "late" ? Schedule::kLate : Schedule::kEager;
      return;
    }
    uint64_t seed = 1;
    const bool random = text.starts_with(kRandom);
    const std::string_view rest = random ? text.substr(kRandom.size()) : "";
    const bool seeded = rest.starts_with(':');
    const char* const end = rest.data() + rest.size();
    const bool read = seeded && std::from_chars(rest.data() + 1, end, seed).ptr == end;
    if (!random || (!rest.empty() && !read)) {
      std::fprintf(stderr,
                   "ONEBIT_EMULATED_CUDA_SCHEDULE is \"%.*s\": use late, eager, random or "
                   "random:SEED\n",
                   static_cast<int>(text.size()), text.data());
      std::abort();
    }
    schedule = Schedule::kRandom;
    dice.seed(seed);
  }
};

Chosen& chosen() {
  static auto* const one = new Chosen;
  return *one;
}

}  // namespace

Schedule schedule() {
  return chosen().schedule;
}

void set_schedule(std::string_view text) {
  chosen().set(text);
}

std::mt19937_64& dice() {
  return chosen().dice;
}

}  // namespace emulated_cuda
