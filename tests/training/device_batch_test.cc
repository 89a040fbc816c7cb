// The model reads exactly the batches that the stream has built.
#include "onebit/training/training/device_batch.h"

#include <gtest/gtest.h>

#include "onebit/data/batches/batch.h"
#include "onebit/ground/base/philox.h"
#include "onebit/math/device/memory.h"
#include "tests/device/device_test.h"

namespace onebit::training {
namespace {

constexpr batches::BatchBounds kBounds{
    .sequences = 5, .rows = 5 * 70, .masked_rows = 5 * 9, .label_values = 5 * 300};

using DeviceBatchTest = DeviceTest;

struct SpanRows : batches::PackedRows {
  std::vector<int32_t> spans;  // [2, B]
};

std::vector<int32_t> numbers(RandomSequence& random, size_t count) {
  std::vector<int32_t> values(count);
  for (int32_t& value : values) value = static_cast<int32_t>(random.below(1u << 30));
  return values;
}

void fill_rows(batches::PackedRows& batch, RandomSequence& random, size_t sequences, size_t rows) {
  batch.tokens = numbers(random, rows);
  batch.segments = numbers(random, rows);
  batch.positions = numbers(random, rows);
  batch.sequence_starts = numbers(random, sequences + 1);
  batch.row_keys.resize(rows);
  for (uint64_t& key : batch.row_keys) key = uint64_t{random.below(1u << 30)} << 20 | 5;
}

template <typename T>
std::vector<T> on_host(const ConstView& view) {
  std::vector<T> values(static_cast<size_t>(view.elements()));
  memory::copy(Device{}, values.data(), view.device(), view.raw(), view.size_bytes());
  return values;
}

void expect_rows(const model::DeviceBatch& placed, const batches::PackedRows& batch) {
  EXPECT_EQ(on_host<int32_t>(placed.tokens), batch.tokens);
  EXPECT_EQ(on_host<int32_t>(placed.segments), batch.segments);
  EXPECT_EQ(on_host<int32_t>(placed.positions), batch.positions);
  EXPECT_EQ(on_host<uint64_t>(placed.row_keys), batch.row_keys);
  EXPECT_EQ(on_host<int32_t>(placed.sequence_starts.device), batch.sequence_starts);
}

// On a CPU too, whose views show the batch's own memory: a task is tested there.
TEST(DeviceBatchBounds, AreCheckedOnTheCpu) {
  Context there = Context::cpu(1);
  DeviceBatchBuffer buffer(there.device(), {.sequences = 2, .rows = 64, .tagged_rows = 64});
  RandomSequence random(1, 3, 0);
  batches::PackedRows batch;
  fill_rows(batch, random, 2, 64);
  const std::vector<int32_t> rows = numbers(random, 64), tags = numbers(random, 64);
  buffer.upload(there, batch,
                {{&model::DeviceBatch::tagged_rows, rows}, {&model::DeviceBatch::tags, tags}});
  const std::vector<int32_t> many = numbers(random, 4096);
  EXPECT_DEATH(buffer.upload(there, batch, {{&model::DeviceBatch::tags, many}}), "does not hold");
}

TEST_P(DeviceBatchTest, OfPretraining) {
  Context there = context();
  DeviceBatchBuffer buffer(there.device(), kBounds);
  RandomSequence random(1, 2, 0);
  for (const size_t sequences : {5, 1, 3, 5, 2}) {  // the first is as large as can be
    batches::Batch batch;
    fill_rows(batch, random, sequences, sequences * 70);
    batch.masked_rows = numbers(random, sequences * 9);
    batch.masked_targets = numbers(random, sequences * 9);
    batch.next_sentence = numbers(random, sequences);
    const model::DeviceBatch placed =
        buffer.upload(there, batch,
                      {{&model::DeviceBatch::masked_rows, batch.masked_rows},
                       {&model::DeviceBatch::masked_targets, batch.masked_targets},
                       {&model::DeviceBatch::next_sentence, batch.next_sentence}});
    expect_rows(placed, batch);
    EXPECT_EQ(on_host<int32_t>(placed.masked_rows), batch.masked_rows);
    EXPECT_EQ(on_host<int32_t>(placed.masked_targets), batch.masked_targets);
    EXPECT_EQ(on_host<int32_t>(placed.next_sentence), batch.next_sentence);
  }
}

TEST_P(DeviceBatchTest, OfManyLabels) {
  Context there = context();
  DeviceBatchBuffer buffer(there.device(), kBounds);
  RandomSequence random(5, 6, 0);
  for (const size_t sequences : {5, 1, 3}) {
    batches::PackedRows batch;
    fill_rows(batch, random, sequences, sequences * 70);
    std::vector<float> values(sequences * 300);
    for (float& value : values) value = static_cast<float>(random.uniform());
    const model::DeviceBatch placed = buffer.upload(
        there, batch,
        {{&model::DeviceBatch::label_values, values, static_cast<int64_t>(sequences)}});
    expect_rows(placed, batch);
    EXPECT_EQ(placed.label_values.shape(), (Shape{static_cast<int64_t>(sequences), 300}));
    EXPECT_EQ(on_host<float>(placed.label_values), values);
  }
}

TEST_P(DeviceBatchTest, OfSquad) {
  Context there = context();
  DeviceBatchBuffer buffer(there.device(), kBounds);
  RandomSequence random(3, 4, 0);
  for (const size_t sequences : {2, 5, 1}) {
    SpanRows batch;
    fill_rows(batch, random, sequences, sequences * 33);
    batch.spans = numbers(random, 2 * sequences);
    const model::DeviceBatch placed =
        buffer.upload(there, batch, {{&model::DeviceBatch::spans, batch.spans, 2}});
    expect_rows(placed, batch);
    EXPECT_EQ(placed.spans.shape(), (Shape{2, static_cast<int64_t>(sequences)}));
    EXPECT_EQ(on_host<int32_t>(placed.spans), batch.spans);
  }
}

// The work on one batch may still be waiting when the next ones are on their way: the device is
// kept busy before each batch is read, and the host waits for nothing until all are given.
TEST_P(DeviceBatchTest, LeavesTheBatchesBeforeAlone) {
  constexpr int64_t kBusyBytes = int64_t{32} << 20;
  Context there = context();
  DeviceBatchBuffer buffer(there.device(), kBounds);
  const Buffer busy(there.device(), kBusyBytes);
  Staging busy_on_host(there.device(), kBusyBytes);
  RandomSequence random(5, 6, 0);
  std::vector<SpanRows> batches(6);
  std::vector<Staging> read;
  for (SpanRows& batch : batches) {
    fill_rows(batch, random, 4, 200);
    batch.spans = numbers(random, 8);
    const model::DeviceBatch placed =
        buffer.upload(there, batch, {{&model::DeviceBatch::spans, batch.spans, 2}});
    busy_on_host.download(there, busy.data(), kBusyBytes);
    read.emplace_back(there.device(), placed.tokens.size_bytes());
    read.back().download(there, placed.tokens.raw(), placed.tokens.size_bytes());
  }
  for (size_t i = 0; i < batches.size(); ++i) {
    read[i].wait();
    const auto* tokens = reinterpret_cast<const int32_t*>(read[i].data());
    EXPECT_EQ(std::vector<int32_t>(tokens, tokens + 200), batches[i].tokens) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceBatchTest,
                         testing::Values(DeviceType::kCpu, DeviceType::kCuda), name_of_device);

}  // namespace
}  // namespace onebit::training
