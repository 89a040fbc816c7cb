#include "onebit/ground/base/lost_maps.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "onebit/ground/base/number.h"
#include "onebit/ground/base/printable.h"
#include "onebit/ground/base/run_event.h"

namespace onebit {
namespace {

constexpr size_t kMaxMaps = 1024;
constexpr size_t kMaxPathBytes = 511;

struct Slot {
  std::atomic<bool> is_taken = false;
  std::atomic<uintptr_t> begin = 0;  // 0: not remembered (yet)
  size_t size_bytes = 0;
  char path[kMaxPathBytes + 1] = {};
};

std::array<Slot, kMaxMaps> slots;
// Descriptor of `onebit launch`, or -1. The handler cannot ask the environment.
int events = -1;

void put(int descriptor, std::string_view text) {
  [[maybe_unused]] const ssize_t written = ::write(descriptor, text.data(), text.size());
}

// Only calls what may be called in a handler.
void end_with_line(int signal, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (const Slot& slot : slots) {
    const uintptr_t begin = slot.begin.load(std::memory_order_acquire);
    if (begin == 0 || address < begin || address - begin >= slot.size_bytes) continue;
    constexpr std::string_view kReason =
        ": became shorter while it was used, or its disk cannot be read: restore the file, and "
        "start again\n";
    const std::string_view path(slot.path);
    put(STDERR_FILENO, "error: ");
    put(STDERR_FILENO, path);
    put(STDERR_FILENO, kReason);
    if (events >= 0) {
      put(events, "failed ");
      put(events, path);
      put(events, kReason);
    }
    ::_exit(1);
  }
  // Not a map of ours: the default action follows when the instruction is repeated.
  ::signal(signal, SIG_DFL);
}

}  // namespace

void explain_lost_maps() {
  const char* descriptor = std::getenv(kEventsVariable);
  events = whole_number<int>(descriptor == nullptr ? "" : descriptor).value_or(-1);
  struct sigaction action {};
  action.sa_sigaction = end_with_line;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

void remember_map(const void* begin, size_t size_bytes, std::string_view path) {
  for (Slot& slot : slots) {
    if (slot.is_taken.exchange(true, std::memory_order_acquire)) continue;
    const std::string shown = printable(path);
    const size_t bytes = std::min(shown.size(), kMaxPathBytes);
    std::memcpy(slot.path, shown.data(), bytes);
    slot.path[bytes] = '\0';
    slot.size_bytes = size_bytes;
    slot.begin.store(reinterpret_cast<uintptr_t>(begin), std::memory_order_release);
    return;
  }
}

void forget_map(const void* begin) {
  for (Slot& slot : slots) {
    if (slot.begin.load(std::memory_order_relaxed) != reinterpret_cast<uintptr_t>(begin)) continue;
    slot.begin.store(0, std::memory_order_relaxed);
    slot.is_taken.store(false, std::memory_order_release);
    return;
  }
}

}  // namespace onebit
