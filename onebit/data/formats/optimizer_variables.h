// Tensors of a checkpoint that belong to an optimizer or to the loop of a training program.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "onebit/data/formats/tensor_source.h"

namespace onebit::formats {

class OptimizerVariables {
 public:
  // `names` come from plain_names(), one per entry. Both must outlive it.
  OptimizerVariables(std::span<const TensorEntry> entries, const std::vector<std::string>& names);

  // Why entry `index` is no parameter, or "" if it may be one. TensorFlow's optimizers keep their
  // slots as VARIABLE/SLOT or SCOPE/VARIABLE/SLOT, so that a name is a slot's if the rest of it is
  // a tensor of the file. A slot has its variable's shape, or fewer axes, which distinguishes it
  // from a part of an adapter. The caller asks for names that are not a model's.
  std::optional<std::string> reason(size_t index) const;

 private:
  bool is_slot(size_t index) const;

  std::span<const TensorEntry> entries_;
  const std::vector<std::string>& names_;
  std::unordered_map<std::string_view, size_t> index_;
};

}  // namespace onebit::formats
