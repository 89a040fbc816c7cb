// Times work on one device and collects the times in a table, with rates relative to the rates of
// the first copy and the first product. Operands are random: a GPU multiplies constants faster,
// because it needs less power for them.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/philox.h"
#include "onebit/ground/metrics/text_table.h"
#include "onebit/math/device/context.h"
#include "onebit/math/ops/elementwise.h"
#include "onebit/math/tensor/tensor.h"

namespace onebit {

class DeviceBench {
 public:
  DeviceBench(Context& context, int rounds) : context_(context), rounds_(rounds) {}

  // Seconds of one call, the best of the rounds.
  double time(const std::function<void()>& work, int calls = 20) {
    work();
    context_.synchronize();
    double best = 1e30;
    for (int round = 0; round < rounds_; ++round) {
      const Stopwatch watch;
      for (int call = 0; call < calls; ++call) work();
      context_.synchronize();
      best = std::min(best, watch.seconds() / calls);
    }
    return best;
  }
  void bytes(const std::string& name, int64_t moved_bytes, const std::function<void()>& work) {
    const double seconds = time(work), rate = static_cast<double>(moved_bytes) / seconds;
    if (copy_rate_ == 0) copy_rate_ = rate;
    add(name, seconds, fmt::format("{:.0f} GB/s", rate / 1e9), rate / copy_rate_, "a copy");
  }
  void flops(const std::string& name, double operations, const std::function<void()>& work) {
    const double seconds = time(work), rate = operations / seconds;
    if (product_rate_ == 0) product_rate_ = rate;
    add(name, seconds, fmt::format("{:.1f} TFLOP/s", rate / 1e12), rate / product_rate_,
        "the products");
  }
  // `share` is relative to what `bound` names.
  void add(const std::string& name, double seconds, const std::string& rate, double share,
           const char* bound) {
    const std::string relative = fmt::format("{:.0f} % of {}", 100 * share, bound);
    table_.add_row({name, fmt::format("{:.3f} ms", 1e3 * seconds), rate, relative});
    rows_.push_back({{"name", name},
                     {"milliseconds", 1e3 * seconds},
                     {"rate", rate},
                     {"share", share},
                     {"bound", bound}});
    std::fprintf(stderr, "%s: %.3f ms, %s, %s\n", name.c_str(), 1e3 * seconds, rate.c_str(),
                 relative.c_str());
  }
  // Uniform in [-0.02, 0.02), but zeros of other types.
  Tensor make(DType type, Shape shape) const { return filled(type, shape, -0.02f); }
  // Uniform in [0, 0.02).
  Tensor positive(DType type, Shape shape) const { return filled(type, shape, 0.0f); }
  template <typename T>
  Tensor upload(const std::vector<T>& host) const {
    const Shape shape{static_cast<int64_t>(host.size())};
    Tensor tensor(context_.device(), DTypeOf<T>::value, shape);
    copy(tensor.view(), ConstView::of(host.data(), shape));
    return tensor;
  }
  Context& context() { return context_; }
  std::string text() const { return table_.text(2); }
  const Json& rows() const { return rows_; }
  double product_rate() const { return product_rate_; }

 private:
  Tensor filled(DType type, Shape shape, float least) const {
    Tensor tensor = Tensor::zeros(context_.device(), type, shape);
    if (type != DType::kF32 && type != DType::kBF16 && type != DType::kF16) return tensor;
    constexpr int64_t kTile = 1 << 20;  // repeated
    std::vector<float> values(kTile);
    RandomSequence random(1, 2, 3);
    for (float& value : values) {
      value = least + (0.02f - least) * static_cast<float>(random.uniform());
    }
    const Tensor uploaded = upload(values);
    const Tensor tile(context_.device(), type, {kTile});
    ops::cast(context_, {.from = uploaded.view(), .to = tile.view()});
    context_.synchronize();
    const int64_t count = tensor.view().elements();
    const View flat = tensor.view().reshaped({count});
    for (int64_t at = 0; at < count; at += kTile) {
      const int64_t part = std::min(kTile, count - at);
      copy(flat.rows(at, at + part), tile.view().rows(0, part));
    }
    return tensor;
  }

  Context& context_;
  int rounds_;
  double copy_rate_ = 0, product_rate_ = 0;
  metrics::TextTable table_;
  Json rows_ = Json::array();
};

}  // namespace onebit
