// The model reads exactly the batches that the stream has built.
#include "onebit/training/training/device_batch.h"

#include <gtest/gtest.h>

#include <set>

#include "onebit/data/batches/batch.h"
#include "onebit/ground/base/philox.h"
#include "onebit/math/device/memory.h"
#include "tests/device/device_test.h"

namespace onebit::training {
namespace {

constexpr batches::BatchBounds kBounds{
    .sequences = 5, .rows = 5 * 70, .labelled_rows = 5 * 9, .sequence_values = 5 * 300};

using DeviceBatchTest = DeviceTest;

std::vector<int32_t> numbers(RandomSequence& random, size_t count) {
  std::vector<int32_t> values(count);
  for (int32_t& value : values) value = static_cast<int32_t>(random.below(1u << 30));
  return values;
}

void fill_rows(batches::Batch& batch, RandomSequence& random, size_t sequences, size_t rows) {
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

void expect_rows(const model::DeviceBatch& placed, const batches::Batch& batch) {
  EXPECT_EQ(on_host<int32_t>(placed.tokens), batch.tokens);
  EXPECT_EQ(on_host<int32_t>(placed.segments), batch.segments);
  EXPECT_EQ(on_host<int32_t>(placed.positions), batch.positions);
  EXPECT_EQ(on_host<uint64_t>(placed.row_keys), batch.row_keys);
  EXPECT_EQ(on_host<int32_t>(placed.sequence_starts.device), batch.sequence_starts);
}

// On a CPU too, whose views show the batch's own memory: a task is tested there.
TEST(DeviceBatchBounds, AreCheckedOnTheCpu) {
  Context there = Context::cpu(1);
  DeviceBatchBuffer buffer(there.device(), {.sequences = 2, .rows = 64, .labelled_rows = 64},
                           std::nullopt);
  RandomSequence random(1, 3, 0);
  batches::Batch batch;
  fill_rows(batch, random, 2, 64);
  batch.labelled_rows = numbers(random, 64);
  batch.row_labels = numbers(random, 64);
  batch.sequence_labels = numbers(random, 2 * batches::kMostSequenceLabels);
  buffer.upload(there, batch);
  batch.row_labels = numbers(random, 4096);
  EXPECT_DEATH(buffer.upload(there, batch), "does not hold");
}

TEST(RowClass, IsAtMostSixteenRowsMoreAndOneOfFew) {
  std::set<int64_t> classes;
  for (int64_t rows = 1; rows <= 512; ++rows) {
    const int64_t rounded = row_class(rows);
    EXPECT_GE(rounded, rows);
    EXPECT_LT(rounded - rows, 16);
    EXPECT_EQ(row_class(rounded), rounded);
    classes.insert(rounded);
  }
  EXPECT_LE(classes.size(), 64u);
}

// Sequences of 5 tokens, with numbers of their own.
batches::Batch batch_of(int64_t sequences) {
  batches::Batch batch;
  batch.sequence_starts = {0};
  for (int64_t sequence = 0; sequence < sequences; ++sequence) {
    const int64_t first_row = batch.rows();
    batch.tokens.resize(static_cast<size_t>(first_row + 5), static_cast<int32_t>(100 + sequence));
    batch.segments.resize(batch.tokens.size(), 0);
    batch.end_sequence(first_row, static_cast<uint64_t>(sequence));
  }
  return batch;
}

TEST(DeviceBatchRounding, AddsASequenceWhereThereIsRoom) {
  Context there = Context::cpu(1);
  const auto rows_with = [&](const batches::BatchBounds& bounds, int64_t sequences) {
    DeviceBatchBuffer buffer(there.device(), bounds, std::nullopt);
    batches::Batch batch = batch_of(sequences);
    const batches::Batch before = batch;
    const model::DeviceBatch placed = buffer.upload_rounded(there, batch);
    EXPECT_EQ(placed.tokens.elements(), placed.positions.elements());
    EXPECT_EQ(placed.sequence_starts.host.back(), placed.rows());
    for (int64_t row = 0; row < before.rows(); ++row) {
      EXPECT_EQ(placed.tokens.data<int32_t>()[row], before.tokens[static_cast<size_t>(row)]);
    }
    for (int64_t i = 0; i <= before.sequences(); ++i) {
      EXPECT_EQ(placed.sequence_starts.host[static_cast<size_t>(i)],
                before.sequence_starts[static_cast<size_t>(i)]);
    }
    return placed.rows();
  };
  EXPECT_EQ(rows_with({.sequences = 4, .rows = 64, .longest = 8}, 3), 16);
  EXPECT_EQ(rows_with({.sequences = 3, .rows = 64, .longest = 8}, 3), 15) << "no more sequences";
  EXPECT_EQ(rows_with({.sequences = 4, .rows = 15, .longest = 8}, 3), 15) << "no more rows";
  EXPECT_EQ(rows_with({.sequences = 9, .rows = 64, .longest = 2}, 1), 5) << "too long a sequence";
  EXPECT_EQ(rows_with({.sequences = 9, .rows = 64, .longest = 8}, 4), 20) << "a class by itself";
}

// As create_position_ids_from_input_ids() of transformers: a token that has no position gets the
// one before the first, and the next one goes on from the one before it.
TEST(DeviceBatchPositions, LeaveATokenOut) {
  constexpr int32_t kPad = 1;
  Context there = Context::cpu(1);
  DeviceBatchBuffer buffer(there.device(), kBounds, kPad);
  batches::Batch batch;
  batch.clear();
  const auto add = [&](const std::vector<int32_t>& tokens) {
    const int64_t first = batch.rows();
    batch.tokens.insert(batch.tokens.end(), tokens.begin(), tokens.end());
    batch.segments.resize(batch.tokens.size(), 0);
    batch.end_sequence(first, 0);
  };
  add({0, 5, 6, 2});
  model::DeviceBatch placed = buffer.upload(there, batch);
  EXPECT_EQ(placed.lowest_position, 0);
  EXPECT_EQ(on_host<int32_t>(placed.positions), (std::vector<int32_t>{0, 1, 2, 3}));
  add({0, kPad, 5, kPad, kPad, 6, 2});
  placed = buffer.upload(there, batch);
  EXPECT_EQ(placed.lowest_position, -1);
  EXPECT_EQ(on_host<int32_t>(placed.positions),
            (std::vector<int32_t>{1, 2, 3, 4, 1, 0, 2, 0, 0, 3, 4}));
  DeviceBatchBuffer counts_all(there.device(), kBounds, std::nullopt);
  EXPECT_EQ(counts_all.upload(there, batch).lowest_position, 0);
}

TEST_P(DeviceBatchTest, HasTheRowsAndTheirLabels) {
  Context there = context();
  DeviceBatchBuffer buffer(there.device(), kBounds, std::nullopt);
  RandomSequence random(1, 2, 0);
  for (const size_t sequences : {5, 1, 3, 5, 2}) {  // the first is as large as can be
    batches::Batch batch;
    fill_rows(batch, random, sequences, sequences * 70);
    batch.labelled_rows = numbers(random, sequences * 9);
    batch.row_labels = numbers(random, sequences * 9);
    batch.sequence_labels = numbers(random, sequences);
    const model::DeviceBatch placed = buffer.upload(there, batch);
    expect_rows(placed, batch);
    EXPECT_EQ(on_host<int32_t>(placed.labelled_rows), batch.labelled_rows);
    EXPECT_EQ(on_host<int32_t>(placed.row_labels), batch.row_labels);
    EXPECT_EQ(on_host<int32_t>(placed.sequence_labels), batch.sequence_labels);
    EXPECT_EQ(placed.sequence_values.elements(), 0);
  }
}

TEST_P(DeviceBatchTest, HasTheLabelsOfSequences) {
  Context there = context();
  DeviceBatchBuffer buffer(there.device(), kBounds, std::nullopt);
  RandomSequence random(5, 6, 0);
  for (const size_t sequences : {5, 1, 3}) {
    batches::Batch batch;
    fill_rows(batch, random, sequences, sequences * 70);
    batch.sequence_labels = numbers(random, sequences * batches::kMostSequenceLabels);
    batch.sequence_values.resize(sequences * 300);
    for (float& value : batch.sequence_values) value = static_cast<float>(random.uniform());
    const model::DeviceBatch placed = buffer.upload(there, batch);
    expect_rows(placed, batch);
    EXPECT_EQ(placed.labelled_rows.elements(), 0);
    EXPECT_EQ(on_host<int32_t>(placed.sequence_labels), batch.sequence_labels);
    EXPECT_EQ(on_host<float>(placed.sequence_values), batch.sequence_values);
  }
}

// The work on one batch may still be waiting when the next ones are on their way: the device is
// kept busy before each batch is read, and the host waits for nothing until all are given.
TEST_P(DeviceBatchTest, LeavesTheBatchesBeforeAlone) {
  constexpr int64_t kBusyBytes = int64_t{32} << 20;
  Context there = context();
  DeviceBatchBuffer buffer(there.device(), kBounds, std::nullopt);
  const Buffer busy(there.device(), kBusyBytes);
  Staging busy_on_host(there.device(), kBusyBytes);
  RandomSequence random(5, 6, 0);
  std::vector<batches::Batch> batches(6);
  std::vector<Staging> read;
  for (batches::Batch& batch : batches) {
    fill_rows(batch, random, 4, 200);
    batch.sequence_labels = numbers(random, 8);
    const model::DeviceBatch placed = buffer.upload(there, batch);
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
