#include "onebit/math/model/memory_report.h"

#include <gtest/gtest.h>

#include "onebit/math/device/context.h"
#include "onebit/math/device/memory.h"
#include "onebit/math/model/pretraining_model.h"
#include "tests/model/test_model.h"
#include "tests/model/tiny_batch.h"

namespace onebit::model {
namespace {

int64_t bytes_of(const std::vector<MemoryRow>& rows, const std::string& name) {
  for (const MemoryRow& row : rows) {
    if (row.name == name) return row.bytes;
  }
  ADD_FAILURE() << "no row " << name;
  return 0;
}

int64_t saved_bytes(const MemoryOptions& options) {
  const BatchLimits limits{.rows = 32 * 128, .sequences = 32, .labelled = 32 * 20};
  return bytes_of(
      memory_report(preset("bert-base"), limits, options, DType::kF32, PreTrainingHeads::kBoth),
      "saved activations");
}

TEST(MemoryReport, EveryOptionSavesMemory) {
  const int64_t plain = saved_bytes({});
  EXPECT_LT(saved_bytes({.gelu_checkpoint = true}), plain);
  EXPECT_LT(saved_bytes({.normalize_invertible = true}), plain);
  EXPECT_LT(saved_bytes({.full_recomputation = true}), plain / 4);
  EXPECT_LT(saved_bytes({.gelu_checkpoint = true, .normalize_invertible = true}),
            saved_bytes({.gelu_checkpoint = true}));
}

// Post-LN layers keep 16 times [rows, hidden]: query, key, value, context, two sums, two norms, and
// 4 + 4 around the activation. The last layer keeps only 3 + 1 of them for every row.
TEST(MemoryReport, CountsWhatALayerKeeps) {
  const BatchLimits limits{.rows = 32 * 128, .sequences = 32, .labelled = 32 * 20};
  EncoderConfig config = preset("bert-base");
  const auto saved = [&](int64_t layers) {
    config.layers = layers;
    return bytes_of(memory_report(config, limits, {}, DType::kBF16, PreTrainingHeads::kBoth),
                    "saved activations");
  };
  const int64_t matrix = limits.rows * config.hidden_size * 2;
  const int64_t statistics = limits.rows * 4 * (4 + config.heads);
  EXPECT_EQ(saved(12) - saved(11), 16 * matrix + statistics);
}

// A bit for each score, in words of 64 keys, where a GPU's kernels keep them.
TEST(MemoryReport, CountsTheBitsOfAttentionsDropout) {
  EncoderConfig config = preset("bert-base");
  BatchLimits limits{.rows = 32 * 130, .sequences = 32, .longest = 130, .labelled = 32 * 20};
  const auto saved = [&](DeviceType device, DType compute, const MemoryOptions& options) {
    return bytes_of(
        memory_report(config, limits, options, compute, PreTrainingHeads::kBoth, device),
        "saved activations");
  };
  const int64_t none = saved(DeviceType::kCpu, DType::kBF16, {});
  const int64_t bits = config.layers * config.heads * limits.rows * 3 * 8;
  EXPECT_EQ(saved(DeviceType::kCuda, DType::kBF16, {}), none + bits);
  EXPECT_EQ(saved(DeviceType::kCuda, DType::kBF16, {.attention_dropout_checkpoint = true}), none);
  EXPECT_EQ(saved(DeviceType::kCuda, DType::kF32, {}), saved(DeviceType::kCpu, DType::kF32, {}));
  limits.longest = 0;  // unknown: as many as the model has positions
  EXPECT_EQ(saved(DeviceType::kCuda, DType::kBF16, {}), none + bits / 3 * 8);
  config.attention_dropout = 0;
  EXPECT_EQ(saved(DeviceType::kCuda, DType::kBF16, {}), none);
}

// On a GPU a chunk of the masked-word head has 256 MiB of logits, in whole tiles of rows. On a CPU
// it has 1,024 rows. A vocabulary of 250,000 words keeps these.
TEST(MemoryReport, CountsTheLogitsOfAChunk) {
  struct Case {
    int64_t vocab;
    DeviceType device;
    DType compute;
    int64_t rows;
  };
  for (const Case& given : {Case{30522, DeviceType::kCpu, DType::kBF16, 1024},
                            Case{30522, DeviceType::kCuda, DType::kBF16, 4352},
                            Case{30522, DeviceType::kCuda, DType::kF32, 2176},
                            Case{250002, DeviceType::kCuda, DType::kF32, 1024}}) {
    EncoderConfig config = preset("bert-base");
    config.vocab_size = given.vocab;
    const auto heads = [&](int64_t masked) {
      const BatchLimits limits{.rows = 64 * 128, .sequences = 64, .labelled = masked};
      return bytes_of(memory_report(config, limits, {}, given.compute,
                                    PreTrainingHeads::kMaskedWords, given.device),
                      "heads and logits");
    };
    const int64_t row = config.stored_vocab_size() * size_bytes_of(given.compute);
    EXPECT_GT(heads(given.rows) - heads(given.rows - 1), row) << given.vocab;
    EXPECT_LT(heads(given.rows + 1) - heads(given.rows), row) << given.vocab;
  }
}

TEST(MemoryReport, ComputeCopyIsThereForHalfPrecisionOnly) {
  const BatchLimits limits{.rows = 8, .sequences = 1, .labelled = 2};
  const auto rows =
      memory_report(tiny_config(false), limits, {}, DType::kBF16, PreTrainingHeads::kBoth);
  EXPECT_EQ(bytes_of(rows, "compute copy"), bytes_of(rows, "values") / 2);
  EXPECT_EQ(
      memory_report(tiny_config(false), limits, {}, DType::kF32, PreTrainingHeads::kBoth).size(),
      rows.size() - 1);
  int64_t total = 0;
  for (const MemoryRow& row : rows) total += row.bytes;
  EXPECT_EQ(total_bytes(rows), total);
}

TEST(MemoryReport, IsOfTheModelThatRuns) {
  const EncoderConfig config = tiny_config(false);
  const BatchLimits limits{.rows = 60, .sequences = 2, .labelled = 4};
  Context context = Context::cpu(1);
  ParameterTable table;
  PreTrainingModel model(config, table, PreTrainingHeads::kBoth);
  table.allocate(Device{}, DType::kF32);
  const auto rows = memory_report(table, model.plan(context, limits, {}, true), DType::kF32);
  const auto counted = memory_report(config, limits, {}, DType::kF32, PreTrainingHeads::kBoth);
  for (const MemoryRow& row : counted) EXPECT_EQ(bytes_of(rows, row.name), row.bytes) << row.name;
}

TEST(TrainingFlops, AreTheReferenceFigures) {
  EXPECT_NEAR(training_flops(preset("bert-base"), 128, 20) / 1e9, 69.9, 0.05);
  EXPECT_NEAR(training_flops(preset("bert-large"), 512, 80) / 1e9, 1020.5, 0.5);
}

TEST(PreTrainingModel, ReservesNoBuffersAfterItsPlan) {
  const EncoderConfig config = tiny_config(false);
  TinyBatch batch = random_batch(config, {5, 9, 3}, 3);
  Context context = Context::cpu(2);
  ParameterTable table;
  PreTrainingModel model(config, table, PreTrainingHeads::kBoth);
  fill_by_name(table, DType::kF32);
  model.plan(context, batch.limits(), {}, true);
  model.forward_backward(context, batch.view(), {}, {});
  model.evaluate(context, batch.view());
  const int64_t before = memory::allocation_count();
  model.forward_backward(context, batch.view(), {}, {});
  model.evaluate(context, batch.view());
  TinyBatch smaller = batch.part(1, 3);
  model.forward_backward(context, smaller.view(), {}, {});
  EXPECT_EQ(memory::allocation_count(), before);
}

}  // namespace
}  // namespace onebit::model
