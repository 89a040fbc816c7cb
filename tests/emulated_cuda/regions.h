// Memory that the emulated runtime has allocated: of which device, and from where to where.
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
  // Filled with NaN. On both sides lie guards: what is written there is a fault when found, and an
  // error of the address sanitizer at once, as is any use of device memory by the host.
  char* add(MemoryKind kind, int device, size_t size_bytes);
  void remove(const Region& region);
  // The region that the address is in, or, as the end of an empty view, behind; null: none.
  const Region* of(const void* data) const;
  size_t device_bytes(int device) const;
  void check_guards() const;
  // Lets the work that runs use a device's memory; -1: all of them.
  void open(int device) const;
  void close() const;

 private:
  static void check_guards(const Region& region);

  std::map<const char*, Region> regions_;  // by their begin
};

}  // namespace emulated_cuda
