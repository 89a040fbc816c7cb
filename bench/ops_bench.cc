// The operations at BERT-base shapes, each as a share of the machine's best rate in the same run:
// matrix products against the best large square product, everything else against a triad over
// memory.
//   ops_bench [threads] [rows] [linear|rows|attention|loss|windows]
// (default: all processors, 4096 rows, all of them). "windows" is attention in one sequence of all
// rows, without a window and with one.
// Times are wall-clock times or, for one thread, processor times, which other load on the machine
// does not distort.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/parallel_for.h"
#include "onebit/math/attention/attention.h"
#include "onebit/math/device/onednn_stream.h"
#include "onebit/math/ops/activation.h"
#include "onebit/math/ops/embedding.h"
#include "onebit/math/ops/layer_norm.h"
#include "onebit/math/ops/linear.h"
#include "onebit/math/ops/losses.h"
#include "onebit/math/ops/reduce.h"
#include "onebit/math/tensor/tensor.h"

namespace onebit::ops {
namespace {

constexpr int64_t kHidden = 768, kIntermediate = 3072, kHeads = 12, kVocab = 30528;

class Bench {
 public:
  Bench(int threads, int64_t rows, DType dtype)
      : context_(Context::cpu(threads)), threads_(threads), rows_(rows), dtype_(dtype) {}

  void run(std::string_view part) {
    const auto wanted = [&](std::string_view name) { return part.empty() || part == name; };
    measure_ceilings();
    if (wanted("linear")) run_linear();
    if (wanted("rows")) run_rows();
    if (wanted("attention")) {
      for (const int64_t length : {128, 384, 512}) {
        if (length <= rows_) run_attention(length);
      }
    }
    if (wanted("loss")) run_loss();
    if (wanted("windows")) {
      for (const int64_t window : {-1, 64}) run_attention(rows_, window);
    }
  }

 private:
  double now() const {
    timespec time;
    clock_gettime(threads_ == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  }

  // Seconds of the fastest of at least three calls within about a second.
  double best(const std::function<void()>& call) const {
    call();
    double seconds = 1e9, spent = 0;
    for (int repeat = 0; repeat < 3 || (spent < 1 && repeat < 50); ++repeat) {
      const double start = now();
      call();
      const double once = now() - start;
      seconds = std::min(seconds, once);
      spent += once;
    }
    return seconds;
  }

  Tensor tensor(Shape shape, DType dtype, float spread = 1) const {
    Tensor result = Tensor::zeros({}, dtype, shape);
    uint32_t state = 12345;
    for (int64_t i = 0; i < shape.elements(); ++i) {
      state = state * 1664525u + 1013904223u;
      const float value = (static_cast<float>(state >> 8) * 0x1p-24f - 0.5f) * spread;
      if (dtype == DType::kF32) result.data<float>()[i] = value;
      if (dtype == DType::kBF16) result.data<bf16>()[i] = bf16(value);
    }
    return result;
  }
  Tensor tensor(Shape shape, float spread = 1) const { return tensor(shape, dtype_, spread); }

  void report_flops(const std::string& name, double flops, double seconds) const {
    fmt::print("{:44} {:9.2f} ms {:8.1f} GFLOP/s {:5.0f} % of the ceiling\n", name, seconds * 1e3,
               flops / seconds * 1e-9, 100 * flops / seconds / flops_ceiling_);
  }
  // `passes`: how many times an activation of `columns` columns is read or written.
  void report_bytes(const std::string& name, int64_t columns, double passes, double seconds) const {
    const double bytes = passes * static_cast<double>(rows_ * columns * size_bytes_of(dtype_));
    fmt::print("{:44} {:9.2f} ms {:8.1f} GB/s    {:5.0f} % of the triad\n", name, seconds * 1e3,
               bytes / seconds * 1e-9, 100 * bytes / seconds / triad_);
  }

  void measure_ceilings() {
    for (const int64_t size : {1024, 2048, 3072}) {
      const Tensor a = tensor({size, size}), b = tensor({size, size}), c = tensor({size, size});
      const double seconds = best([&] {
        linear(context_, {.x = a.view(), .weight = b.view(), .bias = {}, .y = c.view()});
      });
      const double flops = 2.0 * static_cast<double>(size * size * size);
      flops_ceiling_ = std::max(flops_ceiling_, flops / seconds);
    }
    const int64_t count = int64_t{8} << 20;
    const Tensor a = tensor({count}, DType::kF32), b = tensor({count}, DType::kF32);
    const Tensor c = tensor({count}, DType::kF32);
    const double seconds = best([&] {
      context_.parallel_for(count, 1, [&](int64_t begin, int64_t end) {
        const float *from_a = a.data<float>(), *from_b = b.data<float>();
        float* to = c.data<float>();
        for (int64_t i = begin; i < end; ++i) to[i] = from_a[i] + 3.0f * from_b[i];
      });
    });
    triad_ = 12.0 * static_cast<double>(count) / seconds;
    fmt::print("{}, {} thread(s), {} rows, {}, bf16 native: {}\n", name_of(dtype_), threads_, rows_,
               OnednnStream::instruction_set(), bf16_is_native(context_));
    fmt::print("ceilings: square product {:.1f} GFLOP/s, triad {:.1f} GB/s\n",
               flops_ceiling_ * 1e-9, triad_ * 1e-9);
  }

  void run_linear() {
    struct Layer {
      int64_t rows, in, out;
    };
    for (const auto& [rows, in, out] :
         {Layer{rows_, kHidden, kHidden}, Layer{rows_, kHidden, 3 * kHidden},
          Layer{rows_, kHidden, kIntermediate}, Layer{rows_, kIntermediate, kHidden},
          Layer{std::max<int64_t>(rows_ * 20 / 128, 1), kHidden, kVocab}}) {
      const Tensor x = tensor({rows, in}), weight = tensor({out, in}), y = tensor({rows, out});
      const Tensor bias = tensor({out}, DType::kF32), grad = tensor({out, in}, DType::kF32);
      const double flops = 2.0 * static_cast<double>(rows * in * out);
      const std::string shape = fmt::format("{} x {} -> {}", rows, in, out);
      report_flops(
          "linear " + shape, flops, best([&] {
            linear(context_,
                   {.x = x.view(), .weight = weight.view(), .bias = bias.view(), .y = y.view()});
          }));
      report_flops("linear_backward_input " + shape, flops, best([&] {
                     linear_backward_input(
                         context_,
                         {.grad_y = y.view(), .weight = weight.view(), .grad_x = x.view()});
                   }));
      report_flops(
          "linear_backward_weight " + shape, flops, best([&] {
            linear_backward_weight(
                context_,
                {.grad_y = y.view(), .x = x.view(), .grad_weight = grad.view(), .grad_bias = {}});
          }));
    }
  }

  kernels::Dropout dropout(float probability) {
    if (row_keys_.empty()) row_keys_ = Tensor::zeros({}, DType::kU64, {rows_});
    for (int64_t row = 0; row < rows_; ++row) {
      row_keys_.data<uint64_t>()[row] = static_cast<uint64_t>(row);
    }
    return {.probability = probability, .seed = 1, .site = 2, .row_keys = row_keys_.view()};
  }

  void run_rows() {
    const Tensor x = tensor({rows_, kHidden}), residual = tensor({rows_, kHidden});
    const Tensor sum = tensor({rows_, kHidden}), y = tensor({rows_, kHidden});
    const Tensor grad = tensor({rows_, kHidden}), grad_x = tensor({rows_, kHidden});
    const Tensor gamma = tensor({kHidden}, DType::kF32), beta = tensor({kHidden}, DType::kF32);
    const Tensor mean = tensor({rows_}, DType::kF32), inverse = tensor({rows_}, DType::kF32);
    for (const float probability : {0.0f, 0.1f}) {
      const kernels::Dropout drop = dropout(probability);
      const std::string name = fmt::format(", dropout {}", probability);
      report_bytes("residual_norm" + name, kHidden, 4, best([&] {
                     residual_norm(context_, {.residual = residual.view(),
                                              .x = x.view(),
                                              .dropout = drop,
                                              .gamma = gamma.view(),
                                              .beta = beta.view(),
                                              .sum = sum.view(),
                                              .y = y.view(),
                                              .mean = mean.view(),
                                              .inverse_stddev = inverse.view()});
                   }));
      report_bytes("residual_norm_backward" + name, kHidden, 4, best([&] {
                     residual_norm_backward(context_, {.grad_y = grad.view(),
                                                       .grad_y_extra = {},
                                                       .grad_sum_extra = {},
                                                       .sum = sum.view(),
                                                       .y = {},
                                                       .gamma = gamma.view(),
                                                       .beta = {},
                                                       .mean = mean.view(),
                                                       .inverse_stddev = inverse.view(),
                                                       .dropout = drop,
                                                       .grad_residual = x.view(),
                                                       .grad_x = grad_x.view(),
                                                       .grad_gamma = beta.view(),
                                                       .grad_beta = beta.view(),
                                                       .grad_bias = beta.view()});
                   }));
    }
    const Tensor wide = tensor({rows_, kIntermediate}, 4), out = tensor({rows_, kIntermediate});
    const Tensor grad_bias = tensor({kIntermediate}, DType::kF32);
    for (const auto kind : {ActivationKind::kGeluErf, ActivationKind::kGeluTanh}) {
      const std::string name = kind == ActivationKind::kGeluErf ? "gelu erf" : "gelu tanh";
      report_bytes(name, kIntermediate, 2, best([&] {
                     activation(context_, {.kind = kind, .x = wide.view(), .y = out.view()});
                   }));
      report_bytes(name + " backward, bias summed", kIntermediate, 3, best([&] {
                     activation_backward(context_, {.kind = kind,
                                                    .grad_y = out.view(),
                                                    .saved = wide.view(),
                                                    .grad_x = out.view(),
                                                    .grad_bias = grad_bias.view()});
                   }));
    }
  }

  void run_attention(int64_t length, int64_t window = -1) {
    const Tensor qkv = tensor({rows_, 3 * kHidden}), out = tensor({rows_, kHidden});
    const Tensor grad = tensor({rows_, kHidden}), grad_qkv = tensor({rows_, 3 * kHidden});
    const Tensor log_sum_exp = tensor({kHeads, rows_}, DType::kF32);
    std::vector<int32_t> starts;
    for (int64_t row = 0; row <= rows_; row += length) starts.push_back(static_cast<int32_t>(row));
    starts.back() = static_cast<int32_t>(rows_);  // the last sequence also has the remaining rows
    double pairs = 0;
    for (size_t i = 1; i < starts.size(); ++i) {
      const double tokens = starts[i] - starts[i - 1], width = static_cast<double>(window);
      const bool sees_all = window < 0 || width >= tokens;
      pairs += sees_all ? tokens * tokens : tokens * (2 * width + 1) - width * (width + 1);
    }
    const SequenceStarts sequences{
        ConstView::of(starts.data(), {static_cast<int64_t>(starts.size())}), starts};
    const double flops = 4.0 * pairs * static_cast<double>(kHidden);
    for (const float probability : {0.0f, 0.1f}) {
      const kernels::Dropout drop = dropout(probability);
      std::string name = fmt::format(", {} tokens, dropout {}", length, probability);
      if (window >= 0) name += fmt::format(", window {}", window);
      report_flops("attention" + name, flops, best([&] {
                     attention(context_, {.qkv = qkv.view(),
                                          .sequence_starts = sequences,
                                          .heads = kHeads,
                                          .window = window,
                                          .dropout = drop,
                                          .context = out.view(),
                                          .log_sum_exp = log_sum_exp.view()});
                   }));
      report_flops("attention_backward" + name, 2.5 * flops, best([&] {
                     attention_backward(context_, {.grad_context = grad.view(),
                                                   .qkv = qkv.view(),
                                                   .context = out.view(),
                                                   .log_sum_exp = log_sum_exp.view(),
                                                   .sequence_starts = sequences,
                                                   .heads = kHeads,
                                                   .window = window,
                                                   .dropout = drop,
                                                   .grad_qkv = grad_qkv.view()});
                   }));
    }
    // Forward and backward of the linear layers of one encoder layer.
    const double linear_flops = 3 * 2.0 * static_cast<double>(rows_) * 12 * kHidden * kHidden;
    fmt::print("(the linear layers beside it take {:.0f} ms at the ceiling)\n",
               linear_flops / flops_ceiling_ * 1e3);
  }

  void run_loss() {
    const int64_t masked = std::max<int64_t>(rows_ * 20 / 128, 1);
    const Tensor logits = tensor({masked, kVocab}), losses = tensor({masked}, DType::kF32);
    const Tensor targets = Tensor::zeros({}, DType::kI32, {masked});
    const double seconds = best([&] {
      cross_entropy(context_, {.logits = logits.view(),
                               .classes = kVocab - 6,
                               .targets = targets.view(),
                               .write_gradient = true,
                               .gradient_scale = 1,
                               .losses = losses.view(),
                               .correct = {}});
    });
    report_bytes(fmt::format("cross_entropy {} x {}", masked, kVocab), masked * kVocab / rows_, 2,
                 seconds);
    const Tensor gradient = tensor({int64_t{16} << 20}, DType::kF32);
    const double norm = best([&] { squared_norm(context_, gradient.view()); });
    fmt::print("{:44} {:9.2f} ms {:8.1f} GB/s    {:5.0f} % of the triad\n", "squared_norm 16 M",
               norm * 1e3, static_cast<double>(gradient.view().size_bytes()) / norm * 1e-9,
               100 * static_cast<double>(gradient.view().size_bytes()) / norm / triad_);
  }

  Context context_;
  int threads_;
  int64_t rows_;
  DType dtype_;
  double flops_ceiling_ = 0, triad_ = 0;
  Tensor row_keys_;
};

}  // namespace
}  // namespace onebit::ops

int main(int count, char** arguments) {
  const int threads = count > 1 ? std::atoi(arguments[1]) : onebit::available_threads();
  const int64_t rows = count > 2 ? std::atoll(arguments[2]) : 4096;
  const std::string_view part = count > 3 ? arguments[3] : "";
  for (const onebit::DType dtype : {onebit::DType::kF32, onebit::DType::kBF16}) {
    onebit::ops::Bench(threads, rows, dtype).run(part);
  }
}
