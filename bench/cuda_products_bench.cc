// The linear layers of BERT-large on one CUDA device, with the operations that are part of the
// product and those that are not. The log reports which of cuBLASLt's algorithms was chosen, and
// among how many that give the same bits.
//   cuda_products_bench [tokens]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "bench/device_bench.h"
#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/log.h"
#include "onebit/math/device/memory.h"
#include "onebit/math/ops/linear.h"
#include "onebit/math/tensor/tensor.h"

namespace {

using namespace onebit;

void report(Context& context, const char* name, double operations,
            const std::function<void()>& work) {
  constexpr int kRounds = 5, kCalls = 20;
  work();
  context.synchronize();
  double best = 1e30;
  for (int round = 0; round < kRounds; ++round) {
    const Stopwatch watch;
    for (int call = 0; call < kCalls; ++call) work();
    context.synchronize();
    best = std::min(best, watch.seconds() / kCalls);
  }
  std::printf("  %-28s %8.3f ms %8.1f TFLOP/s\n", name, 1e3 * best, operations / best / 1e12);
}

void layer(Context& context, DType type, int64_t rows, int64_t in, int64_t out) {
  const DeviceBench operands(context, 1);
  const auto make = [&](DType dtype, Shape shape) { return operands.make(dtype, shape); };
  const Tensor x = make(type, {rows, in}), weight = make(type, {out, in});
  const Tensor y = make(type, {rows, out}), activated = make(type, {rows, out});
  const Tensor grad_x = make(type, {rows, in}), bias = make(DType::kF32, {out});
  const Tensor grad_weight = make(DType::kF32, {out, in}), grad_bias = make(DType::kF32, {out});
  const double work = 2.0 * static_cast<double>(rows) * static_cast<double>(in * out);
  std::printf("%s [%ld x %ld] . [%ld x %ld]\n", std::string(name_of(type)).c_str(),
              static_cast<long>(rows), static_cast<long>(in), static_cast<long>(in),
              static_cast<long>(out));
  const auto activation = [&](const char* forward, const char* backward, ops::ActivationKind kind) {
    report(context, forward, work, [&] {
      ops::linear_activation(context, {.kind = kind,
                                       .x = x.view(),
                                       .weight = weight.view(),
                                       .bias = bias.view(),
                                       .pre_activation = y.view(),
                                       .y = activated.view()});
    });
    report(context, backward, work, [&] {
      ops::linear_backward_activation(context, {.kind = kind,
                                                .grad_y = y.view(),
                                                .weight = weight.view(),
                                                .saved = x.view(),
                                                .grad_x = grad_x.view(),
                                                .grad_bias = {}});
    });
  };
  report(context, "forward", work, [&] {
    ops::linear(context,
                {.x = x.view(), .weight = weight.view(), .bias = bias.view(), .y = y.view()});
  });
  report(context, "to input", work, [&] {
    ops::linear_backward_input(
        context, {.grad_y = y.view(), .weight = weight.view(), .grad_x = grad_x.view()});
  });
  activation("forward, erf-GELU", "to input, erf-GELU", ops::ActivationKind::kGeluErf);
  activation("forward, tanh-GELU", "to input, tanh-GELU", ops::ActivationKind::kGeluTanh);
  for (const View& sums : {View(), grad_bias.view()}) {
    report(context, sums.empty() ? "to weight" : "to weight and bias", work, [&] {
      ops::linear_backward_weight(context, {.grad_y = y.view(),
                                            .x = x.view(),
                                            .grad_weight = grad_weight.view(),
                                            .grad_bias = sums});
    });
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (memory::cuda_device_count() == 0) {
    std::printf("no CUDA device here: nothing was measured\n");
    return 0;
  }
  set_log_level(LogLevel::kDebug);
  const int64_t tokens = count > 1 ? std::atoll(arguments[1]) : 8192;
  Context context = Context::cuda(0);
  for (const DType type : {DType::kBF16, DType::kF16}) {
    layer(context, type, tokens, 1024, 4096);
    layer(context, type, tokens, 4096, 1024);
    layer(context, type, tokens, 1024, 3072);
    layer(context, type, tokens, 1024, 1024);
  }
}
