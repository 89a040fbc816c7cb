#include "onebit/training/costs/observed_pass.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/philox.h"
#include "onebit/math/device/profile.h"
#include "onebit/math/model/training_pass.h"
#include "onebit/math/ops/elementwise.h"

namespace onebit::costs {
namespace {

constexpr uint64_t kSeed = 1;

// A micro-batch of full sequences, on the host.
class DrawnBatch {
 public:
  explicit DrawnBatch(const PassShape& shape) {
    RandomSequence random(kSeed, 2, 3);
    const auto word = [&] {
      return static_cast<int32_t>(random.below(static_cast<uint32_t>(shape.model.vocab_size)));
    };
    for (int64_t sequence = 0; sequence < shape.sequences; ++sequence) {
      for (int64_t position = 0; position < shape.length; ++position) {
        keys_.push_back(keys_.size());
        tokens_.push_back(word());
        segments_.push_back(shape.model.segments > 1 && position >= shape.length / 2 ? 1 : 0);
        positions_.push_back(static_cast<int32_t>(position));
      }
      for (int64_t masked = 0; masked < shape.masked; ++masked) {
        const int64_t at = sequence * shape.length + masked * shape.length / shape.masked;
        masked_rows_.push_back(static_cast<int32_t>(at));
        targets_.push_back(word());
      }
      starts_.push_back(static_cast<int32_t>(tokens_.size()));
      next_.push_back(static_cast<int32_t>(sequence % 2));
    }
  }

  model::DeviceBatch view() const {
    return {.tokens = flat(tokens_),
            .segments = flat(segments_),
            .positions = flat(positions_),
            .row_keys = flat(keys_),
            .sequence_starts = {.device = flat(starts_), .host = starts_},
            .labelled_rows = flat(masked_rows_),
            .row_labels = flat(targets_),
            .sequence_labels = flat(next_),
            .sequence_values = {}};
  }

 private:
  template <typename T>
  static ConstView flat(const std::vector<T>& values) {
    return ConstView::of(values.data(), {static_cast<int64_t>(values.size())});
  }

  std::vector<int32_t> tokens_, segments_, positions_, masked_rows_, targets_, next_;
  std::vector<int32_t> starts_{0};
  std::vector<uint64_t> keys_;
};

bool is(const char* text, std::string_view other) {
  return text != nullptr && text == other;
}

void add(ByKind& work, ByKind& seconds, const ProfileSum& sum) {
  if (is(sum.place.operation, "matrix_product")) {
    work.products += sum.work.flops;
    seconds.products += sum.seconds;
  } else if (sum.work.flops > 0) {
    work.attention += sum.work.flops;
    seconds.attention += sum.seconds;
  } else {
    work.rest += sum.work.bytes;
    seconds.rest += sum.seconds;
  }
}

// Divides a backward pass into parts by its phases. A forward pass is a single part.
ObservedPass parts_of(const std::vector<ProfileSum>& sums, bool backward) {
  ObservedPass pass;
  for (const ProfileSum& sum : sums) {
    const char* const phase = sum.place.phase;
    if (!backward) {
      add(pass.work.forward, pass.seconds.forward, sum);
    } else if (is(phase, model::kEncoderBackward)) {
      add(pass.work.encoder, pass.seconds.encoder, sum);
    } else if (is(phase, model::kEmbeddingsBackward)) {
      add(pass.work.embeddings, pass.seconds.embeddings, sum);
    } else {
      add(pass.work.heads, pass.seconds.heads, sum);
    }
  }
  return pass;
}

class Observer {
 public:
  // The work of operations does not depend on values: without timing the values remain zeros.
  Observer(Context& context, const PassShape& shape, DType compute, bool timed)
      : context_(context), batch_(shape), model_(shape.model, table_, shape.heads) {
    table_.allocate(context.device(), compute);
    if (timed) table_.initialize(kSeed);
    if (compute != DType::kF32) {
      ops::cast(context, {.from = table_.values(), .to = table_.compute_values()});
    }
    model_.plan(context,
                {.rows = shape.sequences * shape.length,
                 .sequences = shape.sequences,
                 .longest = shape.length,
                 .labelled = shape.sequences * shape.masked},
                shape.memory, true);
  }

  // Each half has its own profile. The time between its operations is added to the half's `rest`.
  ObservedPass pass() {
    Profile forward, backward;
    Stopwatch watch;
    double forward_seconds = 0;
    begin(forward);
    model_.forward_backward(context_, batch_.view(), {.masked_lm = 1e-2, .next_sentence = 1e-1},
                            {.dropout_seed = kSeed, .gradients_ready = {}, .forward_done = [&] {
                               forward.stop();
                               begin(backward);
                               forward_seconds = watch.restart();
                             }});
    const double backward_seconds = watch.seconds();
    backward.stop();
    context_.set_profile_track(nullptr);
    ObservedPass first = parts_of(forward.tracks().front()->sums(), false);
    ObservedPass pass = parts_of(backward.tracks().front()->sums(), true);
    pass.work.forward = first.work.forward;
    pass.seconds.forward = first.seconds.forward;
    pass.seconds.forward.rest += std::max(0.0, forward_seconds - pass.seconds.forward.sum());
    pass.seconds.heads.rest += std::max(0.0, backward_seconds - pass.seconds.backward().sum());
    return pass;
  }

 private:
  void begin(Profile& profile) {
    context_.set_profile_track(&profile.track("pass"));
    profile.start({});
  }

  Context& context_;
  DrawnBatch batch_;
  ParameterTable table_;
  model::PreTrainingModel model_;
};

double total(const ObservedPass& pass) {
  return pass.seconds.forward.sum() + pass.seconds.backward().sum();
}

}  // namespace

ByKind operator+(const ByKind& a, const ByKind& b) {
  return {a.products + b.products, a.attention + b.attention, a.rest + b.rest};
}

ByKind operator-(const ByKind& a, const ByKind& b) {
  return {a.products - b.products, a.attention - b.attention, a.rest - b.rest};
}

ByKind operator*(double factor, const ByKind& a) {
  return {factor * a.products, factor * a.attention, factor * a.rest};
}

ByKind operator/(const ByKind& a, const ByKind& b) {
  const auto quotient = [](double x, double y) { return x > 0 ? x / y : 0; };
  return {quotient(a.products, b.products), quotient(a.attention, b.attention),
          quotient(a.rest, b.rest)};
}

ObservedPass observe_pass(Context& context, const PassShape& shape, DType compute, double seconds) {
  ONEBIT_INVARIANT(context.device().is_cpu());
  Observer observer(context, shape, compute, seconds > 0);
  ObservedPass best = observer.pass();
  const Stopwatch spent;
  for (bool first = true; seconds > 0 && (first || spent.seconds() < seconds); first = false) {
    const ObservedPass pass = observer.pass();
    if (first || total(pass) < total(best)) best = pass;
  }
  return best;
}

}  // namespace onebit::costs
