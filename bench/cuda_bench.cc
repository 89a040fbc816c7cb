// One CUDA device in one table: the rates of memory and cuBLASLt, each operation at the shapes of
// BERT-large relative to them, the passes of the optimizers and the codec, and whole training
// steps.
//   cuda_bench [--rounds 3] [--steps] [--preset bert-large] [--json FILE]
// Rates are the best of the rounds, all measured in the same run.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "bench/device_bench.h"
#include "bench/flat_passes.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/philox.h"
#include "onebit/math/attention/attention.h"
#include "onebit/math/device/memory.h"
#include "onebit/math/model/memory_report.h"
#include "onebit/math/model/pretraining_model.h"
#include "onebit/math/ops/activation.h"
#include "onebit/math/ops/elementwise.h"
#include "onebit/math/ops/embedding.h"
#include "onebit/math/ops/layer_norm.h"
#include "onebit/math/ops/linear.h"
#include "onebit/math/ops/losses.h"
#include "onebit/math/updates/adam_update.h"

namespace {

using namespace onebit;

void bench_products(DeviceBench& bench, DType type) {
  constexpr int64_t kRows = 16384;
  struct Layer {
    const char* name;
    int64_t in, out;
  };
  for (const Layer& layer : {Layer{"feed-forward in", 1024, 4096}, Layer{"out", 4096, 1024},
                             Layer{"qkv", 1024, 3072}, Layer{"attention out", 1024, 1024}}) {
    const Tensor x = bench.make(type, {kRows, layer.in}), y = bench.make(type, {kRows, layer.out});
    const Tensor weight = bench.make(type, {layer.out, layer.in});
    const Tensor bias = bench.make(type, {layer.out});
    const Tensor grad = bench.make(DType::kF32, {layer.out, layer.in});
    const double work = 2.0 * kRows * static_cast<double>(layer.in * layer.out);
    const std::string name = fmt::format("{} {}", name_of(type), layer.name);
    Context& context = bench.context();
    bench.flops(name + " forward", work, [&] {
      ops::linear(context,
                  {.x = x.view(), .weight = weight.view(), .bias = bias.view(), .y = y.view()});
    });
    bench.flops(name + " to input", work, [&] {
      ops::linear_backward_input(context,
                                 {.grad_y = y.view(), .weight = weight.view(), .grad_x = x.view()});
    });
    bench.flops(name + " to weight", work, [&] {
      ops::linear_backward_weight(
          context,
          {.grad_y = y.view(), .x = x.view(), .grad_weight = grad.view(), .grad_bias = {}});
    });
  }
}

void bench_attention(DeviceBench& bench, DType type, int64_t length, float probability) {
  constexpr int64_t kRows = 16384, kHeads = 16, kHidden = 1024;
  std::vector<int32_t> starts;
  for (int64_t at = 0; at <= kRows; at += length) starts.push_back(static_cast<int32_t>(at));
  std::vector<uint64_t> keys(kRows);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  const int64_t rows = starts.back();
  const Tensor on_starts = bench.upload(starts), on_keys = bench.upload(keys);
  const Tensor qkv = bench.make(type, {rows, 3 * kHidden}),
               mixed = bench.make(type, {rows, kHidden});
  const Tensor grad = bench.make(type, {rows, kHidden}),
               grad_qkv = bench.make(type, {rows, 3 * kHidden});
  const Tensor log_sum = bench.make(DType::kF32, {kHeads, rows}),
               grad_bias = bench.make(DType::kF32, {3 * kHidden});
  const SequenceStarts sequences{on_starts.view(), starts};
  const int64_t words =
      ops::attention_kept_words(DeviceType::kCuda, type, kHidden / kHeads, length);
  const Tensor kept(bench.context().device(), DType::kU64, {kHeads, rows, words});
  const kernels::Dropout dropout{probability, 1, 2, on_keys.first_rows(rows)};
  const double work = 4.0 * static_cast<double>(rows * length * kHidden);
  const std::string name =
      fmt::format("{} attention {} dropout {}", name_of(type), length, probability);
  Context& context = bench.context();
  bench.flops(name + " forward", work, [&] {
    ops::attention(context, {.qkv = qkv.view(),
                             .sequence_starts = sequences,
                             .heads = kHeads,
                             .dropout = dropout,
                             .context = mixed.view(),
                             .log_sum_exp = log_sum.view(),
                             .kept = kept.view()});
  });
  bench.flops(name + " backward", 2.5 * work, [&] {
    ops::attention_backward(context, {.grad_context = grad.view(),
                                      .qkv = qkv.view(),
                                      .context = mixed.view(),
                                      .log_sum_exp = log_sum.view(),
                                      .kept = kept.view(),
                                      .sequence_starts = sequences,
                                      .heads = kHeads,
                                      .dropout = dropout,
                                      .grad_qkv = grad_qkv.view(),
                                      .grad_bias = grad_bias.view()});
  });
}

void bench_rows(DeviceBench& bench, DType type) {
  constexpr int64_t kRows = 16384, kHidden = 1024, kWide = 4096;
  std::vector<uint64_t> keys(kRows);
  const Tensor on_keys = bench.upload(keys);
  const Tensor a = bench.make(type, {kRows, kHidden}), b = bench.make(type, {kRows, kHidden});
  const Tensor c = bench.make(type, {kRows, kHidden}), d = bench.make(type, {kRows, kHidden});
  const Tensor gamma = bench.make(DType::kF32, {kHidden}), sums = bench.make(DType::kF32, {kWide});
  const Tensor mean = bench.make(DType::kF32, {kRows}),
               inverse = bench.positive(DType::kF32, {kRows});
  const Tensor wide = bench.make(type, {kRows, kWide}), other = bench.make(type, {kRows, kWide});
  const View beta = sums.view().rows(0, kHidden);
  const kernels::Dropout dropout{0.1f, 1, 2, on_keys.view()};
  Context& context = bench.context();
  const std::string name(name_of(type));
  bench.bytes(name + " dropout, residual, norm", 4 * a.view().size_bytes(), [&] {
    ops::residual_norm(context, {.residual = a.view(),
                                 .x = b.view(),
                                 .dropout = dropout,
                                 .gamma = gamma.view(),
                                 .beta = gamma.view(),
                                 .sum = c.view(),
                                 .y = d.view(),
                                 .mean = mean.view(),
                                 .inverse_stddev = inverse.view()});
  });
  bench.bytes(name + " its backward", 4 * a.view().size_bytes(), [&] {
    ops::residual_norm_backward(context, {.grad_y = a.view(),
                                          .grad_y_extra = {},
                                          .grad_sum_extra = {},
                                          .sum = c.view(),
                                          .y = {},
                                          .gamma = gamma.view(),
                                          .beta = {},
                                          .mean = mean.view(),
                                          .inverse_stddev = inverse.view(),
                                          .dropout = dropout,
                                          .grad_residual = b.view(),
                                          .grad_x = d.view(),
                                          .grad_gamma = beta,
                                          .grad_beta = beta,
                                          .grad_bias = beta});
  });
  const auto kind = ops::ActivationKind::kGeluErf;
  bench.bytes(name + " gelu", 2 * wide.view().size_bytes(), [&] {
    ops::activation(context, {.kind = kind, .x = wide.view(), .y = other.view()});
  });
  bench.bytes(name + " gelu backward, bias", 3 * wide.view().size_bytes(), [&] {
    ops::activation_backward(context, {.kind = kind,
                                       .grad_y = other.view(),
                                       .saved = wide.view(),
                                       .grad_x = other.view(),
                                       .grad_bias = sums.view()});
  });
  constexpr int64_t kMasked = 2560, kVocab = 30528;
  const Tensor logits = bench.make(type, {kMasked, kVocab});
  const Tensor targets = Tensor::zeros(context.device(), DType::kI32, {kMasked});
  const Tensor losses = bench.make(DType::kF32, {kMasked});
  bench.bytes(name + " cross entropy, gradient", 2 * logits.view().size_bytes(), [&] {
    ops::cross_entropy(context, {.logits = logits.view(),
                                 .classes = 30522,
                                 .targets = targets.view(),
                                 .write_gradient = true,
                                 .gradient_scale = 1,
                                 .losses = losses.view(),
                                 .correct = {}});
  });
}

// Words as frequent as in a text and, as in BERT's vocabulary, most of them in a row: the k-th has
// a share of about 1 / k (Zipf's law).
std::vector<int32_t> words_of_a_text(int64_t count, int64_t vocab) {
  constexpr int64_t kFirst = 999;  // special and unused words, characters
  RandomSequence random(1, 2, 3);
  std::vector<int32_t> words(static_cast<size_t>(count));
  for (int32_t& word : words) {
    const double rank = std::pow(static_cast<double>(vocab - kFirst), random.uniform());
    word = static_cast<int32_t>(std::min(kFirst + static_cast<int64_t>(rank), vocab - 1));
  }
  return words;
}

void bench_embedding(DeviceBench& bench, DType type) {
  constexpr int64_t kRows = 16384, kHidden = 1024, kVocab = 30528, kLength = 128;
  std::vector<int32_t> places(kRows);
  for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int32_t>(i % kLength);
  const Tensor tokens = bench.upload(words_of_a_text(kRows, kVocab));
  const Tensor positions = bench.upload(places);
  const Tensor segments = Tensor::zeros(bench.context().device(), DType::kI32, {kRows});
  const Tensor word = bench.make(type, {kVocab, kHidden}), place = bench.make(type, {512, kHidden});
  const Tensor segment = bench.make(type, {2, kHidden}), grad = bench.make(type, {kRows, kHidden});
  const Tensor gamma = bench.make(DType::kF32, {kHidden}), mean = bench.make(DType::kF32, {kRows});
  const Tensor inverse = bench.positive(DType::kF32, {kRows});
  const Tensor grad_word = bench.make(DType::kF32, {kVocab, kHidden});
  const Tensor grad_place = bench.make(DType::kF32, {512, kHidden});
  const Tensor grad_segment = bench.make(DType::kF32, {2, kHidden});
  const Tensor gamma_sum = bench.make(DType::kF32, {kHidden});
  const Tensor beta_sum = bench.make(DType::kF32, {kHidden});
  // The gradient and the table's rows in, the sum's gradient out and twice in.
  const int64_t moved_bytes = 2 * grad.view().size_bytes() + 3 * kRows * kHidden * 4;
  Context& context = bench.context();
  bench.bytes(fmt::format("{} embedding backward", name_of(type)), moved_bytes, [&] {
    ops::embedding_backward(context, {.grad_y = grad.view(),
                                      .tokens = tokens.view(),
                                      .positions = positions.view(),
                                      .segments = segments.view(),
                                      .word = word.view(),
                                      .position = place.view(),
                                      .segment = segment.view(),
                                      .gamma = gamma.view(),
                                      .mean = mean.view(),
                                      .inverse_stddev = inverse.view(),
                                      .dropout = {},
                                      .grad_word = grad_word.view(),
                                      .grad_position = grad_place.view(),
                                      .grad_segment = grad_segment.view(),
                                      .grad_gamma = gamma_sum.view(),
                                      .grad_beta = beta_sum.view()});
  });
}

// A micro-batch of sequences of one length, on the device.
struct StepBatch {
  std::vector<int32_t> starts{0};
  Tensor tokens, segments, positions, on_starts, rows, targets, next, keys;

  StepBatch(const DeviceBench& bench, int64_t sequences, int64_t length, int64_t masked,
            int64_t vocab) {
    RandomSequence random(1, 2, 3);
    const std::vector<int32_t> words = words_of_a_text(sequences * length, vocab);
    std::vector<int32_t> places, masks, wanted;
    std::vector<uint64_t> row_keys;
    for (int64_t sequence = 0; sequence < sequences; ++sequence) {
      for (int64_t i = 0; i < length; ++i) {
        row_keys.push_back(row_keys.size());
        places.push_back(static_cast<int32_t>(i));
      }
      for (int64_t i = 0; i < masked; ++i) {
        masks.push_back(static_cast<int32_t>(sequence * length + 1 + i * (length - 1) / masked));
        wanted.push_back(static_cast<int32_t>(random.below(static_cast<uint32_t>(vocab))));
      }
      starts.push_back(static_cast<int32_t>(places.size()));
    }
    tokens = bench.upload(words);
    segments = bench.upload(std::vector<int32_t>(words.size(), 0));
    positions = bench.upload(places);
    on_starts = bench.upload(starts);
    rows = bench.upload(masks);
    targets = bench.upload(wanted);
    next = bench.upload(std::vector<int32_t>(static_cast<size_t>(sequences), 0));
    keys = bench.upload(row_keys);
  }
  model::DeviceBatch view() const {
    model::DeviceBatch batch;
    batch.tokens = tokens.view();
    batch.segments = segments.view();
    batch.positions = positions.view();
    batch.row_keys = keys.view();
    batch.sequence_starts = {.device = on_starts.view(), .host = starts};
    batch.labelled_rows = rows.view();
    batch.row_labels = targets.view();
    batch.sequence_labels = next.view();
    return batch;
  }
};

void bench_step(DeviceBench& bench, const std::string& preset, int64_t sequences, int64_t length,
                int64_t masked) {
  Context& context = bench.context();
  const model::EncoderConfig config = model::preset(preset);
  ParameterTable table;
  model::PreTrainingModel model(config, table, model::PreTrainingHeads::kBoth);
  table.allocate(context.device(), DType::kBF16);
  table.initialize(1);
  ops::cast(context, {.from = table.values(), .to = table.compute_values()});
  const Tensor momentum = bench.make(DType::kF32, {table.size_elements()});
  const Tensor variance = bench.positive(DType::kF32, {table.size_elements()});
  const StepBatch batch(bench, sequences, length, masked, config.vocab_size);
  const int64_t rows = sequences * length, guessed = sequences * masked;
  model.plan(context,
             {.rows = rows, .sequences = sequences, .longest = length, .labelled = guessed}, {},
             true);
  const std::vector<updates::UpdateRange> ranges{{0, table.size_elements(), 0.01}};
  const auto step = [&] {
    ops::fill_zero(context, table.gradients(),
                   table.stale_gradients().begin_update(table.size_elements()));
    model.forward_backward(context, batch.view(),
                           {.masked_lm = 1.0 / static_cast<double>(guessed),
                            .next_sentence = 1.0 / static_cast<double>(sequences)},
                           {.dropout_seed = 1});
    updates::adam_update(context, {.value = table.values(),
                                   .compute_value = table.compute_values(),
                                   .gradient = table.gradients(),
                                   .momentum = momentum.view(),
                                   .variance = variance.view(),
                                   .ranges = ranges,
                                   .learning_rate = 1e-5});
  };
  const double seconds = bench.time(step, 5);
  const double work =
      model::training_flops(config, length, masked) * static_cast<double>(sequences);
  bench.add(fmt::format("{} step, {} x {}", preset, sequences, length), seconds,
            fmt::format("{:.0f} sequences/s", static_cast<double>(sequences) / seconds),
            work / seconds / bench.product_rate(), "the products");
}

}  // namespace

int main(int count, char** arguments) {
  CLI::App app("What one CUDA device gives");
  int rounds = 3;
  std::string preset = "bert-large", json;
  bool steps_only = false;
  app.add_option("--rounds", rounds);
  app.add_option("--preset", preset);
  app.add_flag("--steps", steps_only, "Whole steps only");
  app.add_option("--json", json, "Write the rows to this file as well");
  CLI11_PARSE(app, count, arguments);
  if (memory::cuda_device_count() == 0) {
    std::printf("no CUDA device here: nothing was measured\n");
    return 0;
  }
  Context context = Context::cuda(0);
  DeviceBench bench(context, rounds);
  std::printf("cuda:0: %s\n", memory::describe_cuda_device(0).c_str());
  {
    const Tensor from = bench.make(DType::kF32, {1 << 28}), to = bench.make(DType::kF32, {1 << 28});
    bench.bytes("copy", 2 * from.view().size_bytes(),
                [&] { ops::cast(context, {.from = from.view(), .to = to.view()}); });
  }
  bench_products(bench, DType::kBF16);
  if (!steps_only) {
    for (const int64_t length : {128, 384, 512}) {
      for (const float probability : {0.0f, 0.1f}) {
        bench_attention(bench, DType::kBF16, length, probability);
      }
    }
    bench_rows(bench, DType::kBF16);
    bench_embedding(bench, DType::kBF16);
    bench_flat_passes(bench);
  }
  bench_step(bench, preset, 128, 128, 20);
  bench_step(bench, preset, 32, 512, 77);
  std::printf("%s\n", bench.text().c_str());
  if (json.empty()) return 0;
  std::ofstream file(json);
  file << json_text(bench.rows(), 1) << '\n';
  if (file.flush()) return 0;
  std::fprintf(stderr, "error: %s could not be written\n", json.c_str());
  return 1;
}
