// Passes of a small model on a CUDA device.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "onebit/math/device/profile.h"
#include "onebit/math/model/bert.h"
#include "onebit/math/ops/elementwise.h"
#include "tests/model/test_model.h"
#include "tests/model/tiny_batch.h"

namespace onebit::model {

inline EncoderConfig small_config() {
  EncoderConfig config = tiny_config(false);
  config.vocab_size = 300;
  config.hidden_size = 128;
  config.heads = 2;  // of 64 columns, as the tensor-core kernels want them
  config.intermediate_size = 256;
  config.layers = 2;
  config.max_positions = 128;
  config.hidden_dropout = 0.1;
  config.attention_dropout = 0.1;
  return config;
}

// A batch's views moved to a device.
class Placed {
 public:
  Placed(Device device, const DeviceBatch& host) : device_(device), batch_(host) {
    for (ConstView* view : {&batch_.tokens, &batch_.segments, &batch_.positions, &batch_.row_keys,
                            &batch_.sequence_starts.device, &batch_.labelled_rows,
                            &batch_.row_labels, &batch_.sequence_labels}) {
      if (!view->empty()) place(*view);
    }
  }
  const DeviceBatch& batch() const { return batch_; }

 private:
  void place(ConstView& view) {
    Tensor& there = tensors_.emplace_back(device_, view.dtype(), view.shape());
    copy(there.view(), view);
    view = there.view();
  }

  Device device_;
  DeviceBatch batch_;
  std::deque<Tensor> tensors_;
};

// How often each operation runs in one pass in bf16.
template <class Make, class Pass>
std::map<std::string, int64_t> operations(
    Context& context, const Make& make, const Pass& pass, DeviceBatch (TinyBatch::*view)() const,
    ChosenActivation activation = ChosenActivation::kGeluErf) {
  EncoderConfig config = small_config();
  config.choices.activation = config.choices.head_activation = activation;
  ParameterTable table;
  auto model = make(config, table);
  table.allocate(context.device(), DType::kBF16);
  table.initialize(11);
  ops::cast(context, {.from = table.values(), .to = table.compute_values()});
  const TinyBatch host = random_batch(config, {70, 5}, 1);
  const Placed placed(context.device(), (host.*view)());
  model.plan(context, host.limits(), {}, true);
  Profile profile;
  context.set_profile_track(&profile.track("pass"));
  profile.start({});
  pass(model, placed.batch());
  profile.stop();
  context.set_profile_track(nullptr);
  std::map<std::string, int64_t> calls;
  for (const ProfileSum& sum : profile.tracks().front()->sums()) {
    if (sum.place.operation != nullptr) calls[sum.place.operation] += sum.calls;
  }
  return calls;
}

}  // namespace onebit::model
