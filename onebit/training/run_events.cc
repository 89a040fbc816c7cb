#include "onebit/training/run_events.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>

namespace onebit::training {

RunEvents::RunEvents(int rank) {
  const char* text = std::getenv(kEventsVariable);
  if (rank != 0 || text == nullptr) return;
  const std::string_view digits = text;
  std::from_chars(digits.data(), digits.data() + digits.size(), descriptor_);
}

void RunEvents::begin(int64_t step) const {
  put(fmt::format("begin {}\n", step));
}

void RunEvents::step(int64_t step) const {
  put(fmt::format("step {}\n", step));
}

void RunEvents::phase(std::string_view name) const {
  put(fmt::format("phase {}\n", name));
}

void RunEvents::stopped(int64_t step) const {
  put(fmt::format("stopped {}\n", step));
}

void RunEvents::finished(int64_t step) const {
  put(fmt::format("finished {}\n", step));
}

void RunEvents::put(const std::string& line) const {
  if (descriptor_ < 0) return;
  // The guard reads as long as the run lives; it kills the run when it ends, so no write meets a
  // closed pipe.
  [[maybe_unused]] const ssize_t written = ::write(descriptor_, line.data(), line.size());
}

}  // namespace onebit::training
