// Dropout, one dense layer and a loss of its outputs, for one vector per sequence (next-sentence
// prediction, sequence classification) or per tagged row. In the latter case "sequences" below
// means rows.
#pragma once

#include <cstdint>
#include <string>

#include "onebit/math/device/context.h"
#include "onebit/math/kernels/dropout.h"
#include "onebit/math/model/batch.h"
#include "onebit/math/model/bert.h"
#include "onebit/math/model/config.h"
#include "onebit/math/model/declarations.h"
#include "onebit/math/model/memory_plan.h"
#include "onebit/math/model/training_pass.h"

namespace onebit::model {

// What a sequence classifier reads of the last hidden states: of each sequence the first token's,
// or the mean of all.
class SequenceStates {
 public:
  explicit SequenceStates(const EncoderConfig& config)
      : hidden_(config.hidden_size),
        has_mean_(config.choices.sequence_pooling == SequencePooling::kMean) {}

  // EncoderPlan::output_rows for a head that reads these states.
  int64_t planned_rows(const BatchLimits& limits) const { return has_mean_ ? 0 : limits.sequences; }
  // The rows that the encoder computes: none listed for the mean, which needs every row. `first` is
  // batch.first_rows().
  OutputRows output_rows(const ConstView& first) const {
    return has_mean_ ? OutputRows() : OutputRows(&first, 1);
  }

  void reserve(MemoryPlan& memory, int64_t sequences, bool training, DType compute);
  // Returns [sequences, hidden], valid until the next call. `hidden` is what the encoder returned.
  ConstView read(Context& context, const DeviceBatch& batch, ConstView hidden) const;
  // The memory to which the head writes the gradient of what read() returned.
  View gradient(const DeviceBatch& batch, View output_gradient) const;
  // Overwrites output_gradient, after the head has written gradient().
  void backward(Context& context, const DeviceBatch& batch, View output_gradient) const;

 private:
  int64_t hidden_;
  bool has_mean_;
  Tensor mean_, grad_mean_;        // f32 [sequences, hidden]
  Tensor rounded_, grad_rounded_;  // [sequences, hidden], if the compute type is not f32
};

// Dropout before a classifier: the keys of its masks are the row keys of the rows that it reads.
class ClassifierDropout {
 public:
  explicit ClassifierDropout(double probability) : probability_(probability) {}

  // Reserves memory for training on up to `rows` rows.
  void reserve(MemoryPlan& memory, int64_t rows);
  // Dropout of the vectors that belong to `rows` (i32) of the batch. None if `pass` is null.
  kernels::Dropout of(Context& context, const DeviceBatch& batch, ConstView rows,
                      const TrainingPass* pass) const;

 private:
  double probability_;
  Tensor row_keys_;  // u64 [rows]
};

// The meaning of a classifier's outputs.
enum class LabelKind {
  kClass,   // one of several classes: softmax cross-entropy
  kLabels,  // any number of labels: sigmoid cross-entropy, the mean over the labels
  kValues,  // numbers: squared error, the mean over them
};

class SequenceClassifier {
 public:
  // Declares NAME.weight [outputs, hidden] and NAME.bias.
  SequenceClassifier(const EncoderConfig& config, ParameterTable& table, const std::string& name,
                     int64_t outputs);

  void reserve(MemoryPlan& memory, int64_t sequences, bool training, DType compute);

  struct Loss {
    ConstView pooled;          // [sequences, hidden]
    ConstView targets;         // kClass: i32 [sequences]; -1: not counted
                               // else: f32 [sequences, outputs]
    kernels::Dropout dropout;  // applied to pooled
    float gradient_scale;      // for every sequence's loss
    View grad_pooled;          // [sequences, hidden]  overwritten, empty in evaluation
    LabelKind kind = LabelKind::kClass;
    // f32 [outputs]: multiplies the loss of a class, or of a label where it is present. Empty: 1
    ConstView weights = {};
  };
  // Computes losses(), correct() for kClass, and unless in evaluation the table's gradients
  // (training_pass.h).
  void loss(Context& context, const Loss& call) const;
  View losses(int64_t sequences) const { return losses_.first_rows(sequences); }    // f32
  View correct(int64_t sequences) const { return correct_.first_rows(sequences); }  // u8

  // pooled [sequences, hidden]. The logits [sequences, outputs] are valid until the next call.
  View logits(Context& context, ConstView pooled) const;

 private:
  void output_loss(Context& context, const Loss& call, View scores) const;

  int64_t hidden_;
  ParameterTable* table_;
  int64_t outputs_;
  LinearParameters dense_;
  Tensor dropped_, logits_, losses_, correct_;
};

}  // namespace onebit::model
