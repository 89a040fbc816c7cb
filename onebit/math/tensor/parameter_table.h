// The table of parameters: maps names and shapes to one flat f32 buffer of values and one of
// gradients. Collectives, clipping, optimizers and checkpoints work on ranges of the two. Layers
// and files address parameters by name.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "onebit/math/tensor/tensor.h"
#include "onebit/math/tensor/view.h"

namespace onebit {

// Gradients that need not be zero before a backward pass adds to them, because it overwrites them
// first: the gradients of matrices, which are nearly all elements. Filling them with zeros and
// reading them again would cost two passes over memory.

// Knows which parts of the flat buffer of gradients are stale: still from the update before.
// Nothing is stale until begin_update(): without it every pass adds.
class StaleGradients {
 public:
  // The layers ask take() before anything is added to the gradient of this parameter. The range
  // includes the gap behind the parameter. Two layers may cover the same parameter.
  void cover(int parameter, Range range);

  // The caller zeroes the gradients before it adds to them, for example with PyTorch's zero_grad():
  // from now on nothing is stale, and begin_update() has nothing to be zeroed.
  void leave_to_caller() { is_left_to_caller_ = true; }

  // Makes every covered gradient stale. Returns the ranges that are not covered, in a buffer of
  // this many elements. The caller zeroes them now.
  std::vector<Range> begin_update(int64_t size_elements);

  // Whether the parameter's gradient is stale, so that the caller overwrites it. It is no longer
  // stale afterwards.
  bool take(int parameter);
  // The stale ranges that begin in `within`, which holds whole parameters. No pass has written
  // them, so the caller zeroes them. They are no longer stale afterwards.
  std::vector<Range> take(Range within);

 private:
  struct Covered {
    int parameter;
    Range range;
    bool is_stale;
  };
  std::vector<Covered> covered_;  // by range
  bool is_left_to_caller_ = false;
};

enum class InitialValue { kZeros, kOnes, kNormal };

// A layer's declaration of a parameter. It may be one matrix for the layer and several tensors in
// files: the fused query-key-value weight is [3 * hidden, hidden] with three `parts` of equal rows.
struct ParameterDeclaration {
  std::string name;  // the name in files if `parts` is empty, else a label for errors
  Shape shape;       // [rows] or [rows, columns]
  InitialValue init = InitialValue::kZeros;
  double init_stddev = 0;          // `initializer_range` for BERT (model/config.h)
  bool decay = false;              // whether weight decay applies
  int group = 0;                   // optimizers may treat groups differently (optim/optimizer.h)
  bool lookup = false;             // a lookup table: rows may stay without any gradient for long
  bool only_multiplied = false;    // a matrix that nothing but products reads (ops/linear.h)
  int64_t storage_rows = 0;        // 0: as in shape. More: padding rows of zeros, not in files
  std::vector<std::string> parts;  // file names of equal consecutive row groups
  std::vector<Range> held = {};    // elements, counted in the parameter, that stay as they are
                                   // once an optimizer compresses (one_bit/still_entries.h)
};

// One tensor as it appears in files.
struct ParameterEntry {
  std::string name;
  Shape shape;
  int64_t offset_elements = 0;
  bool decay = false;
  int group = 0;
  bool lookup = false;
  int parameter = 0;  // index of its declaration
};

// One declaration placed in the flat buffer. `range` covers its storage rows.
struct Parameter {
  ParameterDeclaration declaration;
  Range range;
  Shape storage_shape;
};

// What a table is allocated for. Inference needs no gradients.
enum class TableUse { kTraining, kInference };

class ParameterTable {
 public:
  // Every parameter begins at a multiple of this many elements (64 bytes of f32).
  static constexpr int64_t kAlignmentElements = 16;

  // Declares a parameter and returns its index. Only before allocate(). Error: duplicate name.
  int add(ParameterDeclaration declaration);

  // Reserves values on `device`, gradients if the use is training, and compute copies unless
  // `compute` is f32: zeroed for training. For inference they are not yet set, since memory that
  // nobody has written costs nothing (training/model_folder.h fills what is read).
  void allocate(Device device, DType compute, TableUse use = TableUse::kTraining);
  // Of a table for inference in f32: the parameter is read from `values`, f32 in its shape without
  // padding rows, for example in a mapped file, and not from the flat buffer. They stay as they are
  // while `owner` lives, which the table keeps.
  void place(int parameter, ConstView values, std::shared_ptr<const void> owner);
  // Draws initial values, which depend only on (seed, name, element).
  void initialize(uint64_t seed);

  // Elements of the flat buffers (gaps and padding rows included).
  int64_t size_elements() const { return size_elements_; }
  // Elements in files: what is usually called the number of parameters.
  int64_t parameter_count() const;
  Device device() const { return device_; }
  DType compute_type() const { return compute_type_; }

  // f32 [size_elements] each. The values are the "master weights" of training in 16 bits. A table
  // for inference has no gradients: an empty view.
  View values() const { return values_.view(); }
  View gradients() const { return gradients_.view(); }
  // The copy of the values in the compute type, written by optimizers and by cast(). It is the
  // values themselves when the compute type is f32.
  View compute_values() const;
  // A part of that copy. It is empty when the compute type is f32.
  View compute_copy(Range range) const;

  // A parameter in its storage shape, or in its shape if it is placed elsewhere. Then nobody may
  // write it.
  View value(int parameter) const;
  View compute_value(int parameter) const;
  View gradient(int parameter) const;

  // Layers overwrite the gradient of this parameter before any of them adds to it. They ask
  // stale_gradients() when.
  void overwrite_gradient(int parameter);
  StaleGradients& stale_gradients() { return stale_gradients_; }

  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::vector<ParameterEntry>& entries() const { return entries_; }
  // Error: no such name. The message suggests the nearest one.
  const ParameterEntry& entry(std::string_view name) const;
  View value_of(const ParameterEntry& entry) const;  // f32, in the shape of the file
  View gradient_of(const ParameterEntry& entry) const;
  // The name of the entry that contains an element of the flat buffer, for diagnostics. Empty in a
  // gap.
  std::optional<std::string> name_at(int64_t element) const;

  // Consecutive ranges that cover the whole flat buffer, each of one group with one decay setting.
  struct DecayRange {
    Range range;
    bool decay = false;
    int group = 0;
  };
  std::vector<DecayRange> decay_ranges() const;
  int group_count() const;  // 1 + the largest group

 private:
  View slice(const Tensor& flat, int parameter) const;

  // Values outside the flat buffer, and what keeps them.
  struct Placed {
    View values;
    std::shared_ptr<const void> owner;
  };

  std::vector<Parameter> parameters_;
  std::vector<ParameterEntry> entries_;
  std::unordered_set<std::string> names_;  // of the entries
  int64_t size_elements_ = 0;
  Device device_;
  DType compute_type_ = DType::kF32;
  Tensor values_, gradients_, compute_values_;
  std::unordered_map<int, Placed> placed_;  // by parameter
  StaleGradients stale_gradients_;
};

}  // namespace onebit
