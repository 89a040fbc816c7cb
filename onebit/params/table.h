// The table of parameters: names and shapes laid over one flat f32 buffer of values and one of
// gradients. Collectives, clipping, optimizers and checkpoints work on ranges of the two; layers
// and files address them by name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/tensor/range.h"
#include "onebit/tensor/tensor.h"

namespace onebit::params {

enum class Init { kZeros, kOnes, kNormal };

// A layer's declaration of a parameter, which may be one matrix for the layer and several tensors
// for files: the fused query-key-value weight is [3 * hidden, hidden] with three `parts` of equal
// rows.
struct Declaration {
  std::string name;  // the file name when `parts` is empty, else a label for errors
  Shape shape;       // [rows] or [rows, columns]
  Init init = Init::kZeros;
  double init_stddev = 0;          // BERT's is `initializer_range` (model/config.h)
  bool decay = false;              // whether weight decay applies
  bool lookup = false;             // rows are looked up: rows may go without any gradient for long
  int64_t storage_rows = 0;        // 0: as shape; more: rows of zeros that no file sees
  std::vector<std::string> parts;  // file names of equal consecutive row groups
};

// One tensor as it appears in files.
struct Entry {
  std::string name;
  Shape shape;
  int64_t offset_elements = 0;
  bool decay = false;
  bool lookup = false;
  int parameter = 0;  // index of the declaration it belongs to
};

// One declaration placed in the flat buffer. `range` covers its storage rows.
struct Parameter {
  Declaration declaration;
  Range range;
  Shape storage_shape;
};

class Table {
 public:
  // Every parameter begins at a multiple of this many elements (64 bytes of f32).
  static constexpr int64_t kAlignmentElements = 16;

  // Declares a parameter and returns its index. Only before allocate(). Error: a name used twice.
  int add(Declaration declaration);

  // Reserves values and gradients on `device`, zeroed; compute copies too unless `compute` is f32.
  void allocate(Device device, DType compute);
  // Draws initial values: a function of (seed, name, element) alone.
  void initialize(uint64_t seed);

  // Elements of the flat buffers (gaps and hidden rows included).
  int64_t size_elements() const { return size_elements_; }
  // Elements in files: what is usually called the number of parameters.
  int64_t parameter_count() const;
  Device device() const { return device_; }
  DType compute_type() const { return compute_type_; }

  // f32 [size_elements] each. The values are the "master weights" of training in 16 bits.
  View values() const { return values_.view(); }
  View gradients() const { return gradients_.view(); }
  // The copy of the values in the compute type, written by optimizers and by cast(); the values
  // themselves when the compute type is f32.
  View compute_values() const;

  // A parameter at its storage shape.
  View value(int parameter) const;
  View compute_value(int parameter) const;
  View gradient(int parameter) const;

  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::vector<Entry>& entries() const { return entries_; }
  // Error: no such name, with the nearest one.
  const Entry& entry(std::string_view name) const;
  View value_of(const Entry& entry) const;  // f32, at the file's shape
  View gradient_of(const Entry& entry) const;
  // The entry that holds an element of the flat buffer, for diagnoses; empty in a gap.
  std::optional<std::string> name_at(int64_t element) const;

  // Consecutive ranges that cover the whole flat buffer, each with one decay setting.
  struct DecayRange {
    Range range;
    bool decay = false;
  };
  std::vector<DecayRange> decay_ranges() const;

 private:
  View slice(const Tensor& flat, int parameter) const;

  std::vector<Parameter> parameters_;
  std::vector<Entry> entries_;
  int64_t size_elements_ = 0;
  Device device_;
  DType compute_type_ = DType::kF32;
  Tensor values_, gradients_, compute_values_;
};

}  // namespace onebit::params
