// The names of a file's tensors without what programs put around a model: the prefix of a module
// that contains it ("model.", "module.module.", "0.auto_model."), and names of wrapped layers.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "onebit/data/formats/families.h"
#include "onebit/data/formats/name_tables.h"
#include "onebit/data/formats/tensor_source.h"

namespace onebit::formats {

struct PlainNames {
  std::vector<std::string> names;  // one per entry
  std::string prefix;              // removed from names, "" if there was none
  size_t prefixed = 0;             // the number of names that began with it

  // "the prefix "model." was removed from all names", in one line, or "" if there was none.
  std::string report() const;
};

// The prefix is what precedes the name of the word embeddings, and is removed from every name that
// begins with it. An encoder without "bert." gets it, and one of another family instead of the
// family's prefix. Without word embeddings no prefix is known, and nothing is removed. Errors:
// several encoders, all of them with a prefix, or a prefix that names another kind of model than
// `family`.
PlainNames plain_names(std::span<const TensorEntry> entries, Naming naming,
                       const std::string& place, const Family& family = bert_family());

// A few names for an error, in quotes, names of embeddings first, or "none" if there are none.
std::string some_names(std::span<const TensorEntry> entries);

// Tensors of a checkpoint that belong to an optimizer or to the loop of a training program.
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
