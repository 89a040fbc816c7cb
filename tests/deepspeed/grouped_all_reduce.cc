#include "tests/deepspeed/grouped_all_reduce.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "onebit/ground/base/error.h"

namespace onebit::deepspeed {
namespace {

std::string suffix_of(size_t group) {
  return fmt::format(".{}", group);
}

}  // namespace

GroupedAllReduce::GroupedAllReduce(const ParameterTable& table, comm::Communicator& communicator,
                                   bool scale_per_tensor) {
  if (communicator.world_size() == 1) return;
  if (!scale_per_tensor) groups_.resize(2);
  for (const Parameter& parameter : table.parameters()) {
    const int64_t elements = parameter.declaration.shape.elements();
    if (scale_per_tensor) groups_.emplace_back();
    Group& group = scale_per_tensor ? groups_.back() : groups_[parameter.declaration.decay ? 0 : 1];
    group.pieces.push_back({parameter.range.begin, parameter.range.begin + elements});
    group.elements += elements;
  }
  std::erase_if(groups_, [](const Group& group) { return group.elements == 0; });
  for (Group& group : groups_) {
    group.all_reduce = std::make_unique<AllReduce>(communicator, group.elements);
  }
}

void GroupedAllReduce::run(float* flat) {
  for (Group& group : groups_) {
    staged_.resize(static_cast<size_t>(group.elements));
    float* at = staged_.data();
    for (const auto& [begin, end] : group.pieces) at = std::copy(flat + begin, flat + end, at);
    group.all_reduce->run(staged_);
    const float* from = staged_.data();
    for (const auto& [begin, end] : group.pieces) {
      std::copy(from, from + (end - begin), flat + begin);
      from += end - begin;
    }
  }
}

void GroupedAllReduce::clear_residuals() {
  for (Group& group : groups_) {
    std::ranges::fill(group.all_reduce->worker_residual(), 0.0f);
    std::ranges::fill(group.all_reduce->server_residual(), 0.0f);
  }
}

double GroupedAllReduce::worker_residual_norm() {
  double square = 0;
  for (Group& group : groups_) {
    for (const float value : group.all_reduce->worker_residual()) square += double{value} * value;
  }
  return std::sqrt(square);
}

void GroupedAllReduce::save(optim::StateWriter& writer) const {
  for (size_t group = 0; group < groups_.size(); ++group) {
    groups_[group].all_reduce->save(writer, suffix_of(group));
  }
}

void GroupedAllReduce::load(const optim::StateReader& reader) {
  for (size_t group = 0; group < groups_.size(); ++group) {
    groups_[group].all_reduce->load(reader, suffix_of(group));
  }
}

int64_t GroupedAllReduce::size_bytes() const {
  int64_t bytes = 0;
  for (const Group& group : groups_) bytes += group.all_reduce->size_bytes();
  return bytes;
}

}  // namespace onebit::deepspeed
