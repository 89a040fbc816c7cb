// A checkpoint in memory: every rank writes a MemoryState, and any number of ranks can read them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "onebit/exchange/optim/state_layout.h"
#include "onebit/ground/base/json.h"
#include "onebit/math/tensor/tensor.h"

namespace onebit::optim {

class MemoryState : public StateWriter {
 public:
  void scalar(const std::string& name, Json value) override {
    // Converts to text and back, like a file.
    scalars[name] = Json::parse(value.dump());
  }
  void replicated(const std::string& name, ConstView flat) override {
    replicated_buffers[name] = values_of(flat);
  }
  void own(const std::string& name, ConstView flat) override {
    own_buffers[name] = values_of(flat);
  }

  bool operator==(const MemoryState& other) const {
    return scalars == other.scalars && replicated_buffers == other.replicated_buffers &&
           own_buffers == other.own_buffers;
  }

  std::map<std::string, Json> scalars;
  std::map<std::string, std::vector<float>> replicated_buffers, own_buffers;

 private:
  static std::vector<float> values_of(ConstView flat) {
    EXPECT_EQ(flat.dtype(), DType::kF32);
    const Tensor host = to_cpu_f32(flat);
    return {host.data<float>(), host.data<float>() + flat.elements()};
  }
};

class MemoryReader : public StateReader {
 public:
  explicit MemoryReader(std::vector<MemoryState> ranks) : ranks_(std::move(ranks)) {}

  Json scalar(const std::string& name) const override {
    const auto found = ranks_[0].scalars.find(name);
    return found == ranks_[0].scalars.end() ? Json() : found->second;
  }
  void replicated(const std::string& name, View flat) const override {
    const std::vector<float>& saved = ranks_[0].replicated_buffers.at(name);
    require(static_cast<int64_t>(saved.size()) == flat.elements(), "{}: another size", name);
    copy(flat.reshaped({flat.elements()}), ConstView::of(saved.data(), {flat.elements()}));
  }
  int saved_world_size() const override { return static_cast<int>(ranks_.size()); }
  int64_t own_elements(const std::string& name, int rank) const override {
    return static_cast<int64_t>(own_buffer(name, rank).size());
  }
  void own_of(const std::string& name, int rank, int64_t begin,
              std::span<float> to) const override {
    const std::vector<float>& saved = own_buffer(name, rank);
    require(begin >= 0 && static_cast<size_t>(begin) + to.size() <= saved.size(), "{}: too short",
            name);
    std::copy_n(saved.begin() + begin, to.size(), to.begin());
    own_elements_read_ += static_cast<int64_t>(to.size());
  }
  // The number of elements of own() buffers read so far.
  int64_t own_elements_read() const { return own_elements_read_; }

 private:
  const std::vector<float>& own_buffer(const std::string& name, int rank) const {
    return ranks_[static_cast<size_t>(rank)].own_buffers.at(name);
  }

  std::vector<MemoryState> ranks_;
  mutable int64_t own_elements_read_ = 0;
};

}  // namespace onebit::optim
