// The interface through which an optimizer saves its state to a checkpoint and loads it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "onebit/ground/base/json_fwd.h"
#include "onebit/math/tensor/view.h"

namespace onebit {

// Every value is copied before the call returns: training may continue while a file is written.
class StateWriter {
 public:
  virtual ~StateWriter() = default;
  // Small values, equal on every rank.
  virtual void scalar(const std::string& name, Json value) = 0;
  // A flat f32 buffer equal on every rank: each rank stores its part of it.
  virtual void replicated(const std::string& name, ConstView flat) = 0;
  // A flat f32 buffer that belongs to this rank only (error feedback).
  virtual void own(const std::string& name, ConstView flat) = 0;
};

class StateReader {
 public:
  virtual ~StateReader() = default;
  // Null when the checkpoint has no such value.
  virtual Json scalar(const std::string& name) const = 0;
  // Error: absent, or of another size.
  virtual void replicated(const std::string& name, View flat) const = 0;
  // The number of ranks that wrote the checkpoint.
  virtual int saved_world_size() const = 0;
  // The own() buffer saved by rank `rank`, for any current world size: its number of elements, and
  // the elements from `begin` on, as many as `to` holds (no others are read). Error: absent, or
  // shorter.
  virtual int64_t own_elements(const std::string& name, int rank) const = 0;
  virtual void own_of(const std::string& name, int rank, int64_t begin,
                      std::span<float> to) const = 0;
};

}  // namespace onebit
