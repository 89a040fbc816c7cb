// Dropout, one dense layer and a softmax over classes, on one vector a sequence: next-sentence
// prediction and sequence classification.
#pragma once

#include <cstdint>
#include <string>

#include "onebit/device/context.h"
#include "onebit/kernels/dropout.h"
#include "onebit/model/config.h"
#include "onebit/model/declarations.h"
#include "onebit/model/memory_plan.h"

namespace onebit::model {

class SequenceClassifier {
 public:
  // Declares NAME.weight [classes, hidden] and NAME.bias.
  SequenceClassifier(const BertConfig& config, params::Table& table, const std::string& name,
                     int64_t classes);

  void reserve(MemoryPlan& memory, int64_t sequences, bool training, DType compute);

  struct Loss {
    ConstView pooled;          // [sequences, hidden]
    ConstView targets;         // i32 [sequences]; -1: counts nothing
    kernels::Dropout dropout;  // of pooled
    float gradient_scale;      // of every sequence's loss
    View grad_pooled;          // [sequences, hidden]  overwritten; empty in evaluation
  };
  // Leaves losses() and correct(); adds to the table's gradients unless in evaluation.
  void loss(Context& context, const Loss& call) const;
  View losses(int64_t sequences) const { return losses_.first_rows(sequences); }    // f32
  View correct(int64_t sequences) const { return correct_.first_rows(sequences); }  // u8

  // pooled [sequences, hidden]; the logits [sequences, classes] are valid until the next call.
  View logits(Context& context, ConstView pooled) const;

 private:
  int64_t hidden_;
  params::Table* table_;
  int64_t classes_;
  LinearParameters dense_;
  Tensor dropped_, logits_, losses_, correct_;
};

}  // namespace onebit::model
