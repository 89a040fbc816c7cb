// The memory regions that the emulated runtime has allocated, and their devices.
#pragma once

#include <cstddef>
#include <map>

namespace emulated_cuda {

enum class MemoryKind { kDevice, kPinned };

struct Region {
  char* begin;
  size_t size_bytes;
  MemoryKind kind;
  int device;
};

class Regions {
 public:
  // Allocates memory filled with NaN, between guards. A write to a guard is a fault when a check
  // finds it, and an immediate error with the address sanitizer, as is any use by the host.
  char* add(MemoryKind kind, int device, size_t size_bytes);
  void remove(const Region& region);
  // The region that contains the address, or ends there (for empty views), or null.
  const Region* of(const void* data) const;
  size_t device_bytes(int device) const;
  void check_guards() const;
  // Allows the running work to use a device's memory, or with -1 all devices' memory.
  void open(int device) const;
  void close() const;

 private:
  static void check_guards(const Region& region);

  std::map<const char*, Region> regions_;  // by their first address
};

}  // namespace emulated_cuda
