// A whole training step (forward, backward, AdamW, with dropout, the decoder on masked rows only)
// compared with its matrix products, in one run. `model_bench --help` lists the options.
// Rates are the best of the rounds, and the median of all steps. On a shared machine, use one
// thread and the rates by processor time. On a CUDA device only the step is measured.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "bench/device_choice.h"
#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/parallel_for.h"
#include "onebit/ground/base/philox.h"
#include "onebit/math/device/memory.h"
#include "onebit/math/device/onednn_stream.h"
#include "onebit/math/model/memory_report.h"
#include "onebit/math/model/pretraining_model.h"
#include "onebit/math/ops/elementwise.h"
#include "onebit/math/ops/linear.h"
#include "onebit/math/updates/adam_update.h"

namespace {

using namespace onebit;
using model::EncoderConfig;
using enum model::PreTrainingHeads;

struct Settings {
  std::string preset = "bert-base", compute = "f32", device = "cpu";
  int64_t batch = 32, tokens = 128, masked = 20, layers = 0;  // 0: the preset's
  int threads = available_threads(), steps = 3, rounds = 3;
  model::MemoryOptions memory;
};

// Wall-clock seconds, and processor seconds of all threads.
struct Seconds {
  double wall = 0, processor = 0;
};

Seconds time_of(const Context& context, const std::function<void()>& work) {
  const std::clock_t start = std::clock();
  const Stopwatch watch;
  work();
  context.synchronize();
  return {watch.seconds(), static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC};
}

Seconds best_of(Seconds left, Seconds right) {
  return {std::min(left.wall, right.wall), std::min(left.processor, right.processor)};
}

constexpr Seconds kNever{1e30, 1e30};

DType compute_type(const std::string& name) {
  if (name == "f32") return DType::kF32;
  if (name == "bf16") return DType::kBF16;
  fail("--compute is f32 or bf16, not {}", name);
}

// Tokens, classes and masked positions of a micro-batch of full sequences, on the model's device.
class StepBatch {
 public:
  StepBatch(Device device, const Settings& settings, int64_t vocab) {
    RandomSequence random(1, 2, 3);
    const auto below = [&](int64_t bound) {
      return static_cast<int32_t>(random.below(static_cast<uint32_t>(bound)));
    };
    std::vector<int32_t> tokens, segments, positions, rows, targets, next;
    std::vector<uint64_t> keys;
    for (int64_t s = 0; s < settings.batch; ++s) {
      for (int32_t position = 0; position < settings.tokens; ++position) {
        keys.push_back(keys.size());
        tokens.push_back(below(vocab));
        segments.push_back(position < settings.tokens / 2 ? 0 : 1);
        positions.push_back(position);
      }
      for (int64_t m = 0; m < settings.masked; ++m) {
        const int64_t at = 1 + m * (settings.tokens - 1) / settings.masked;
        rows.push_back(static_cast<int32_t>(s * settings.tokens + at));
        targets.push_back(below(vocab));
      }
      starts_.push_back(static_cast<int32_t>(tokens.size()));
      next.push_back(below(2));
    }
    view_ = {.tokens = place(device, tokens),
             .segments = place(device, segments),
             .positions = place(device, positions),
             .row_keys = place(device, keys),
             .sequence_starts = {.device = place(device, starts_), .host = starts_},
             .labelled_rows = place(device, rows),
             .row_labels = place(device, targets),
             .sequence_labels = place(device, next),
             .sequence_values = {}};
  }

  const model::DeviceBatch& view() const { return view_; }

 private:
  template <typename T>
  ConstView place(Device device, const std::vector<T>& values) {
    const Shape shape{static_cast<int64_t>(values.size())};
    placed_.emplace_back(device, DTypeOf<T>::value, shape);
    copy(placed_.back().view(), ConstView::of(values.data(), shape));
    return placed_.back().view();
  }

  std::vector<int32_t> starts_{0};
  std::vector<Tensor> placed_;
  model::DeviceBatch view_;
};

// One matrix product of a layer: [rows, in] . [in, out], or one of its two gradients.
class Product {
 public:
  Product(const std::string& name, int64_t rows, int64_t in, int64_t out, DType type)
      : name_(name),
        x_(Tensor::zeros({}, type, {rows, in})),
        y_(Tensor::zeros({}, type, {rows, out})),
        weight_(Tensor::zeros({}, type, {out, in})),
        grad_(Tensor::zeros({}, DType::kF32, {out, in})) {}

  const std::string& name() const { return name_; }
  double flops() const {
    return 2.0 * static_cast<double>(x_.shape()[0] * x_.shape()[1] * y_.shape()[1]);
  }
  void forward(Context& context) {
    ops::linear(context, {.x = x_.view(), .weight = weight_.view(), .bias = {}, .y = y_.view()});
  }
  void backward_input(Context& context) {
    ops::linear_backward_input(
        context, {.grad_y = y_.view(), .weight = weight_.view(), .grad_x = x_.view()});
  }
  void backward_weight(Context& context) {
    ops::linear_backward_weight(
        context,
        {.grad_y = y_.view(), .x = x_.view(), .grad_weight = grad_.view(), .grad_bias = {}});
  }

 private:
  std::string name_;
  Tensor x_, y_, weight_, grad_;
};

// Operations per second.
struct Rates {
  double wall = 0, processor = 0;
};

Rates rates(double flops, Seconds seconds) {
  return {flops / seconds.wall, flops / seconds.processor};
}

// The matrix products of a layer, measured alone, each with its best time over the rounds.
class Products {
 public:
  Products(const Settings& settings, const EncoderConfig& config) {
    const DType type = compute_type(settings.compute);
    const int64_t rows = settings.batch * settings.tokens;
    const int64_t hidden = config.hidden_size, wide = config.intermediate_size;
    products_.emplace_back("query, key, value", rows, hidden, 3 * hidden, type);
    products_.emplace_back("attention output", rows, hidden, hidden, type);
    products_.emplace_back("feed-forward in", rows, hidden, config.feed_in_size(), type);
    products_.emplace_back("feed-forward out", rows, wide, hidden, type);
    best_.resize(products_.size(), {kNever, kNever, kNever});
  }

  void measure(Context& context, int repeats) {
    for (size_t product = 0; product < products_.size(); ++product) {
      for (size_t call = 0; call < kCalls.size(); ++call) {
        (products_[product].*kCalls[call])(context);
        for (int repeat = 0; repeat < repeats; ++repeat) {
          const auto work = [&] { (products_[product].*kCalls[call])(context); };
          best_[product][call] = best_of(best_[product][call], time_of(context, work));
        }
      }
    }
  }

  void print() const {
    std::printf("%-20s %10s %10s %10s   GFLOP/s by wall clock (by processor time)\n",
                "matrix product", "forward", "grad x", "grad w");
    for (size_t product = 0; product < products_.size(); ++product) {
      std::printf("%-20s", products_[product].name().c_str());
      for (const Seconds& best : best_[product]) {
        const Rates rate = rates(products_[product].flops(), best);
        std::printf(" %5.0f (%3.0f)", rate.wall * 1e-9, rate.processor * 1e-9);
      }
      std::printf("\n");
    }
  }

  Rates fastest() const {
    Rates most;
    for (size_t product = 0; product < products_.size(); ++product) {
      for (const Seconds& best : best_[product]) {
        const Rates rate = rates(products_[product].flops(), best);
        most = {std::max(most.wall, rate.wall), std::max(most.processor, rate.processor)};
      }
    }
    return most;
  }

  Rates all_together() const {
    Seconds total;
    double flops = 0;
    for (size_t product = 0; product < products_.size(); ++product) {
      for (const Seconds& best : best_[product]) {
        total = {total.wall + best.wall, total.processor + best.processor};
        flops += products_[product].flops();
      }
    }
    return rates(flops, total);
  }

 private:
  static constexpr std::array kCalls{&Product::forward, &Product::backward_input,
                                     &Product::backward_weight};
  std::vector<Product> products_;
  std::vector<std::array<Seconds, 3>> best_;
};

class TrainingStep {
 public:
  TrainingStep(Device device, const Settings& settings, const EncoderConfig& config)
      : settings_(settings),
        batch_(device, settings, config.vocab_size),
        model_(config, table_, config.may_have_next_sentence() ? kBoth : kMaskedWords) {
    table_.allocate(device, compute_type(settings.compute));
    table_.initialize(1);
    momentum_ = Tensor::zeros(device, DType::kF32, {table_.size_elements()});
    variance_ = Tensor::zeros(device, DType::kF32, {table_.size_elements()});
    for (const auto& [range, decay, group] : table_.decay_ranges()) {
      ranges_.push_back({range.begin, range.end, decay ? 0.01 : 0});
    }
  }

  void plan(Context& context) {
    const model::BatchLimits limits{.rows = settings_.batch * settings_.tokens,
                                    .sequences = settings_.batch,
                                    .longest = settings_.tokens,
                                    .labelled = settings_.batch * settings_.masked};
    model_.plan(context, limits, settings_.memory, true);
    if (table_.compute_type() != DType::kF32) {
      ops::cast(context, {.from = table_.values(), .to = table_.compute_values()});
    }
  }

  // Seconds by part: [0] forward and heads, [1] layers backward, [2] embeddings backward, [3]
  // optimizer.
  std::vector<double> parts{0, 0, 0, 0};

  void run(Context& context) {
    Stopwatch watch;
    size_t ranges = 0;
    const size_t last = static_cast<size_t>(2 * model_.config().layers + 1);
    const model::TrainingPass pass{
        .dropout_seed = 1, .loss_scale = 1, .gradients_ready = [&](Range) {
          const size_t range = ranges++;
          const size_t part = range == 0 ? 0 : range < last ? 1 : 2;
          parts[part] += watch.restart();
        }};
    const double sequences = static_cast<double>(settings_.batch);
    const double masked = static_cast<double>(settings_.batch * settings_.masked);
    ops::fill_zero(context, table_.gradients(),
                   table_.stale_gradients().begin_update(table_.size_elements()));
    const auto result = model_.forward_backward(
        context, batch_.view(), {.masked_lm = 1 / masked, .next_sentence = 1 / sequences}, pass);
    loss = result.mlm_loss_sum / masked + result.nsp_loss_sum / sequences;
    watch.restart();
    update(context);
    parts[3] += watch.seconds();
  }

  double loss = 0;

 private:
  void update(Context& context) {
    updates::adam_update(
        context,
        {.value = table_.values(),
         .compute_value = table_.compute_type() == DType::kF32 ? View() : table_.compute_values(),
         .gradient = table_.gradients(),
         .momentum = momentum_.view(),
         .variance = variance_.view(),
         .ranges = ranges_,
         .learning_rate = 1e-4});
  }

  Settings settings_;
  StepBatch batch_;
  ParameterTable table_;
  model::PreTrainingModel model_;
  Tensor momentum_, variance_;
  std::vector<updates::UpdateRange> ranges_;
};

void report(const char* name, Rates step, Rates ceiling) {
  std::printf("  of %-27s %6.1f %% by wall clock, %6.1f %% by processor time\n", name,
              100 * step.wall / ceiling.wall, 100 * step.processor / ceiling.processor);
}

void print_parts(const std::vector<double>& parts) {
  const char* names[] = {"forward and heads", "layers backward", "embeddings backward", "AdamW"};
  double total = 0;
  for (const double part : parts) total += part;
  for (size_t part = 0; part < parts.size(); ++part) {
    std::printf("  %-30s %6.1f %% of the step\n", names[part], 100 * parts[part] / total);
  }
}

// Runs the steps and returns their times. Measures `products`, if not null, before each round.
std::vector<Seconds> measure(Context& context, const Settings& settings, TrainingStep& step,
                             Products* products) {
  std::vector<Seconds> steps;
  for (int warmup = 0; warmup < (products ? 1 : 3); ++warmup) step.run(context);
  context.synchronize();
  for (int round = 0; round < settings.rounds; ++round) {
    if (products) products->measure(context, 3);
    for (int i = 0; i < settings.steps; ++i) {
      steps.push_back(time_of(context, [&] { step.run(context); }));
    }
  }
  return steps;
}

double median_wall(std::vector<Seconds> steps) {
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::nth_element(steps.begin(), middle, steps.end(),
                   [](const Seconds& a, const Seconds& b) { return a.wall < b.wall; });
  return middle->wall;
}

void compare(const Settings& settings, const EncoderConfig& config) {
  require(settings.steps >= 1 && settings.rounds >= 1, "--steps and --rounds must be at least 1");
  Context context = context_on(settings.device, settings.threads);
  const bool on_cpu = context.device().is_cpu();
  const std::string place = on_cpu ? fmt::format("{} threads, oneDNN on {}", settings.threads,
                                                 OnednnStream::instruction_set())
                                   : memory::describe_cuda_device(context.device().index);
  fmt::print("{}, {} layers, {}, batch {} x {} tokens, {} masked, {}\n", settings.preset,
             config.layers, settings.compute, settings.batch, settings.tokens, settings.masked,
             place);
  TrainingStep step(context.device(), settings, config);
  std::optional<Products> products;
  if (on_cpu) products.emplace(settings, config);
  step.plan(context);
  const std::vector<Seconds> steps =
      measure(context, settings, step, products ? &*products : nullptr);
  const Seconds best = std::accumulate(steps.begin(), steps.end(), kNever, best_of);
  if (products) products->print();
  const double samples = static_cast<double>(settings.batch);
  const double flops = model::training_flops(config, settings.tokens, settings.masked);
  const Rates rate = rates(samples * flops, best);
  fmt::print(
      "step: {:.2f} samples/s by wall clock, {:.2f} per processor second; loss {:.4f}\n"
      "median of {} steps: {:.2f} samples/s\n"
      "  {:.1f} GFLOP per sample, {:.1f} GFLOP/s by wall clock, {:.1f} by processor time\n",
      samples / best.wall, samples / best.processor, step.loss, steps.size(),
      samples / median_wall(steps), flops * 1e-9, rate.wall * 1e-9, rate.processor * 1e-9);
  if (!products) return;
  report("the fastest product", rate, products->fastest());
  report("a layer's products", rate, products->all_together());
  print_parts(step.parts);
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("A training step compared with its matrix products");
  app.add_option("--preset", settings.preset);
  app.add_option("--compute", settings.compute, "f32 or bf16");
  app.add_option("--device", settings.device, "cpu or cuda");
  app.add_option("--layers", settings.layers, "fewer layers, for a quick run");
  app.add_option("--batch", settings.batch, "sequences");
  app.add_option("--tokens", settings.tokens, "per sequence");
  app.add_option("--masked", settings.masked, "per sequence");
  app.add_option("--threads", settings.threads);
  app.add_option("--steps", settings.steps, "per round");
  app.add_option("--rounds", settings.rounds);
  app.add_flag("--gelu-checkpoint", settings.memory.gelu_checkpoint);
  app.add_flag("--normalize-invertible", settings.memory.normalize_invertible);
  app.add_flag("--full-recomputation", settings.memory.full_recomputation);
  CLI11_PARSE(app, argc, argv);
  try {
    EncoderConfig config = model::preset(settings.preset);
    if (settings.layers > 0) config.layers = settings.layers;
    compare(settings, config);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
