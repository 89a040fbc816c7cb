// An engine's state in dictionaries of Python: texts of JSON, and arrays.
#pragma once

#include <map>
#include <span>
#include <string>

#include "onebit/exchange/optim/state_layout.h"
#include "onebit/ground/base/json.h"
#include "python/src/module.h"

namespace onebit::python {

// Adds to a dictionary what one rank saves.
class MemoryState final : public optim::StateWriter {
 public:
  explicit MemoryState(nb::dict& to) : to_(to) {}
  void scalar(const std::string& name, Json value) override;
  void replicated(const std::string& name, ConstView flat) override;
  void own(const std::string& name, ConstView flat) override;

 private:
  void keep(const std::string& name, ConstView flat);

  nb::dict& to_;
};

// The states that MemoryState has written, by rank: all of them, or one that is enough for the rank
// that reads it, because the number of ranks is the same.
class StateInMemory final : public optim::StateReader {
 public:
  // Error: `states` is empty.
  StateInMemory(const nb::dict& states, int saved_world_size);
  Json scalar(const std::string& name) const override;
  void replicated(const std::string& name, View flat) const override;
  bool has_replicated(const std::string& name) const;
  int saved_world_size() const override { return saved_world_size_; }
  int64_t own_elements(const std::string& name, int rank) const override;
  void own_of(const std::string& name, int rank, int64_t begin, std::span<float> to) const override;

 private:
  using Array = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  using Arrays = std::map<std::string, Array>;

  const Array& own_buffer(const std::string& name, int rank) const;

  int saved_world_size_;
  std::map<std::string, Json> scalars_;
  std::map<int, Arrays> buffers_;  // by rank
};

}  // namespace onebit::python
