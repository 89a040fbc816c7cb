// Times work on one device and collects the times in a table, with rates relative to those of the
// first copy and the first product.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "onebit/base/clock.h"
#include "onebit/device/context.h"
#include "onebit/metrics/text_table.h"
#include "onebit/ops/elementwise.h"
#include "onebit/tensor/tensor.h"

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
    add(name, seconds, fmt::format("{:.0f} GB/s", rate / 1e9),
        fmt::format("{:.0f} % of a copy", 100 * rate / copy_rate_));
  }
  void flops(const std::string& name, double operations, const std::function<void()>& work) {
    const double seconds = time(work), rate = operations / seconds;
    if (product_rate_ == 0) product_rate_ = rate;
    add(name, seconds, fmt::format("{:.1f} TFLOP/s", rate / 1e12),
        fmt::format("{:.0f} % of the products", 100 * rate / product_rate_));
  }
  void add(const std::string& name, double seconds, const std::string& rate,
           const std::string& share) {
    table_.add_row({name, fmt::format("{:.3f} ms", 1e3 * seconds), rate, share});
    std::fprintf(stderr, "%s: %.3f ms, %s, %s\n", name.c_str(), 1e3 * seconds, rate.c_str(),
                 share.c_str());
  }
  Tensor make(DType type, Shape shape) const {
    Tensor tensor = Tensor::zeros(context_.device(), type, shape);
    if (type == DType::kF32 || type == DType::kBF16) ops::fill(context_, tensor.view(), 0.01f);
    return tensor;
  }
  template <typename T>
  Tensor upload(const std::vector<T>& host) const {
    const Shape shape{static_cast<int64_t>(host.size())};
    Tensor tensor(context_.device(), DTypeOf<T>::value, shape);
    copy(tensor.view(), ConstView::of(host.data(), shape));
    return tensor;
  }
  Context& context() { return context_; }
  std::string text() const { return table_.text(2); }
  double product_rate() const { return product_rate_; }

 private:
  Context& context_;
  int rounds_;
  double copy_rate_ = 0, product_rate_ = 0;
  metrics::TextTable table_;
};

}  // namespace onebit
