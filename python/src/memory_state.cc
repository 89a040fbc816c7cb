#include "python/src/memory_state.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <cstring>
#include <memory>
#include <vector>

#include "onebit/math/device/memory.h"

namespace onebit::python {
namespace {

using FlatArray = nb::ndarray<nb::numpy, float, nb::ndim<1>>;

template <typename Array>
void check_size(const Array& array, int64_t needed) {
  const auto elements = static_cast<int64_t>(array.shape(0));
  require(needed <= elements,
          "the state has {} elements where {} are needed: it is of another model", elements,
          needed);
}

// A part of a state as it is, without a conversion. Error: it is of another type.
template <typename T>
T part_of(nb::handle value, const std::string& label, const char* expected) {
  T part{};
  require(nb::try_cast(value, part, false), "{} is a {}: it must be {}", label,
          nb::type_name(value.type()).c_str(), expected);
  return part;
}

}  // namespace

void MemoryState::scalar(const std::string& name, Json value) {
  const nb::gil_scoped_acquire gil;
  to_[("scalar/" + name).c_str()] = nb::str(value.dump().c_str());
}

void MemoryState::replicated(const std::string& name, ConstView flat) {
  keep("all/" + name, flat);
}

void MemoryState::own(const std::string& name, ConstView flat) {
  keep("own/" + name, flat);
}

void MemoryState::keep(const std::string& name, ConstView flat) {
  const nb::gil_scoped_acquire gil;
  auto copy = std::make_unique<std::vector<float>>(static_cast<size_t>(flat.elements()));
  memory::copy(Device{}, copy->data(), flat.device(), flat.raw(), flat.size_bytes());
  float* data = copy->data();
  const size_t elements = copy->size();
  const nb::capsule owner(copy.release(), [](void* memory) noexcept {
    delete static_cast<std::vector<float>*>(memory);
  });
  to_[name.c_str()] = FlatArray(data, {elements}, owner);
}

StateInMemory::StateInMemory(const nb::dict& states, int saved_world_size)
    : saved_world_size_(saved_world_size) {
  for (const auto& [key_of_state, state] : states) {
    const auto rank = part_of<int>(key_of_state, "a key of the states", "a rank");
    const auto parts =
        part_of<nb::dict>(state, fmt::format("the state of rank {}", rank), "a dict");
    Arrays& arrays = buffers_[rank];
    for (const auto& [key, value] : parts) {
      const auto name = part_of<std::string>(key, "a key of a state", "a str");
      const std::string label = "`" + name + "` of the state";
      if (name.starts_with("scalar/")) {
        scalars_[name.substr(7)] = parse_json(part_of<std::string>(value, label, "a str"), label);
      } else {
        arrays[name] =
            part_of<Array>(value, label, "a dense f32 array of one dimension on the CPU");
      }
    }
  }
  require(!buffers_.empty(), "there is no state to load");
}

Json StateInMemory::scalar(const std::string& name) const {
  const auto found = scalars_.find(name);
  return found == scalars_.end() ? Json() : found->second;
}

bool StateInMemory::has_replicated(const std::string& name) const {
  return buffers_.begin()->second.contains("all/" + name);
}

void StateInMemory::replicated(const std::string& name, View flat) const {
  require(has_replicated(name), "the state has no `{}`: it is of another optimizer", name);
  const Array& array = buffers_.begin()->second.at("all/" + name);
  check_size(array, flat.elements());
  memory::copy(flat.device(), flat.raw(), Device{}, array.data(), flat.size_bytes());
}

int64_t StateInMemory::own_elements(const std::string& name, int rank) const {
  return static_cast<int64_t>(own_buffer(name, rank).shape(0));
}

void StateInMemory::own_of(const std::string& name, int rank, int64_t begin,
                           std::span<float> to) const {
  const Array& array = own_buffer(name, rank);
  check_size(array, begin + static_cast<int64_t>(to.size()));
  std::memcpy(to.data(), array.data() + begin, to.size_bytes());
}

const StateInMemory::Array& StateInMemory::own_buffer(const std::string& name, int rank) const {
  const auto of_rank = buffers_.find(rank);
  require(of_rank != buffers_.end(),
          "the state of rank {} of {} is needed: load the states of all ranks together", rank,
          saved_world_size_);
  const auto found = of_rank->second.find("own/" + name);
  require(found != of_rank->second.end(), "the state has no `{}`: it is of another optimizer",
          name);
  return found->second;
}

}  // namespace onebit::python
