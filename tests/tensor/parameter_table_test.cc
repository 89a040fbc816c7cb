#include "onebit/math/tensor/parameter_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

namespace onebit {
namespace {

ParameterTable small_table() {
  ParameterTable table;
  table.add({.name = "words",
             .shape = {5, 3},
             .init = InitialValue::kNormal,
             .init_stddev = 0.5,
             .decay = true,
             .lookup = true,
             .storage_rows = 8});
  table.add({.name = "norm", .shape = {3}, .init = InitialValue::kOnes});
  table.add({.name = "query-key-value",
             .shape = {6, 8},
             .init = InitialValue::kNormal,
             .init_stddev = 0.02,
             .decay = true,
             .parts = {"query", "key", "value"}});
  table.allocate(Device{}, DType::kF32);
  return table;
}

TEST(Table, PlacesParametersAlignedAndApart) {
  const ParameterTable table = small_table();
  int64_t end = 0;
  for (const auto& parameter : table.parameters()) {
    EXPECT_EQ(parameter.range.begin % ParameterTable::kAlignmentElements, 0);
    EXPECT_GE(parameter.range.begin, end);
    EXPECT_EQ(parameter.range.elements(), parameter.storage_shape.elements());
    end = parameter.range.end;
  }
  EXPECT_GE(table.size_elements(), end);
  EXPECT_EQ(table.size_elements() % ParameterTable::kAlignmentElements, 0);
}

TEST(Table, HiddenRowsAreStoredButNotCounted) {
  const ParameterTable table = small_table();
  EXPECT_EQ(table.value(0).shape(), (Shape{8, 3}));
  EXPECT_EQ(table.entry("words").shape, (Shape{5, 3}));
  EXPECT_EQ(table.parameter_count(), 15 + 3 + 48);
}

TEST(Table, PartsAreConsecutiveRowsOfOneMatrix) {
  ParameterTable table = small_table();
  float* matrix = table.value(2).data<float>();
  std::iota(matrix, matrix + 48, 0.0f);
  EXPECT_EQ(table.value_of(table.entry("query")).data<float>()[0], 0.0f);
  EXPECT_EQ(table.value_of(table.entry("key")).data<float>()[0], 16.0f);
  EXPECT_EQ(table.value_of(table.entry("value")).data<float>()[15], 47.0f);
  EXPECT_EQ(table.value_of(table.entry("key")).shape(), (Shape{2, 8}));
}

TEST(Table, DecayRangesCoverTheBufferOnce) {
  const ParameterTable table = small_table();
  int64_t at = 0;
  for (const auto& range : table.decay_ranges()) {
    EXPECT_EQ(range.range.begin, at);
    at = range.range.end;
  }
  EXPECT_EQ(at, table.size_elements());
  EXPECT_EQ(table.decay_ranges().size(), 3u);
  EXPECT_EQ(table.group_count(), 1);
}

TEST(Table, ParametersOfOtherGroupsHaveRangesOfTheirOwn) {
  ParameterTable table;
  table.add({.name = "a", .shape = {20}});
  table.add({.name = "b", .shape = {20}});
  table.add({.name = "c", .shape = {20}, .group = 2});
  const auto ranges = table.decay_ranges();
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[0].range.end, 64);
  EXPECT_EQ(ranges[1].group, 2);
  EXPECT_EQ(table.group_count(), 3);
}

TEST(Table, InitialValuesDependOnSeedAndNameAlone) {
  ParameterTable first = small_table(), second = small_table(), other = small_table();
  first.initialize(1);
  second.initialize(1);
  other.initialize(2);
  const auto values = [](const ParameterTable& table) {
    const float* data = table.values().data<float>();
    return std::vector<float>(data, data + table.size_elements());
  };
  EXPECT_EQ(values(first), values(second));
  EXPECT_NE(values(first), values(other));

  ParameterTable moved;  // the same tensor at another place of another table
  moved.add({.name = "new", .shape = {40}});
  moved.add({.name = "query", .shape = {2, 8}, .init = InitialValue::kNormal, .init_stddev = 0.02});
  moved.allocate(Device{}, DType::kF32);
  moved.initialize(1);
  const float* here = moved.value_of(moved.entry("query")).data<float>();
  const float* there = first.value_of(first.entry("query")).data<float>();
  EXPECT_EQ(std::vector<float>(here, here + 16), std::vector<float>(there, there + 16));
}

TEST(Table, NormalValuesHaveTheirSpread) {
  ParameterTable table;
  table.add(
      {.name = "wide", .shape = {100001}, .init = InitialValue::kNormal, .init_stddev = 0.02});
  table.allocate(Device{}, DType::kF32);
  table.initialize(9);
  const float* data = table.values().data<float>();
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < 100001; ++i) {
    sum += data[i];
    squares += static_cast<double>(data[i]) * data[i];
  }
  // Five standard errors of mean and variance.
  EXPECT_NEAR(sum / 100001, 0, 5 * 0.02 / std::sqrt(100001.0));
  EXPECT_NEAR(squares / 100001, 0.0004, 5 * 0.0004 * std::sqrt(2 / 100001.0));
}

TEST(Table, HiddenRowsAndGapsStayZero) {
  ParameterTable table = small_table();
  table.initialize(4);
  const float* words = table.value(0).data<float>();
  for (int64_t i = 15; i < 24; ++i) EXPECT_EQ(words[i], 0.0f);
  EXPECT_EQ(table.values().data<float>()[table.parameters()[1].range.end], 0.0f);
}

TEST(Table, NamesElementsAndRefusesWrongNames) {
  ParameterTable table = small_table();
  EXPECT_EQ(table.name_at(0), "words");
  EXPECT_FALSE(table.name_at(15).has_value());  // a hidden row
  EXPECT_EQ(table.name_at(table.entry("key").offset_elements + 3), "key");
  try {
    table.entry("quary");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("query"), std::string::npos);
  }
  ParameterTable twice;
  twice.add({.name = "a", .shape = {1}});
  EXPECT_THROW(twice.add({.name = "a", .shape = {1}}), Error);
}

TEST(Table, ComputeCopyHasItsOwnMemory) {
  ParameterTable table;
  table.add({.name = "a", .shape = {4}});
  table.allocate(Device{}, DType::kBF16);
  EXPECT_EQ(table.compute_value(0).dtype(), DType::kBF16);
  EXPECT_EQ(table.value(0).dtype(), DType::kF32);
  EXPECT_EQ(small_table().compute_value(0).dtype(), DType::kF32);
}

TEST(Table, AParameterMayLieElsewhere) {
  const auto values = std::make_shared<std::vector<float>>(15, 4.0f);
  std::weak_ptr<std::vector<float>> kept = values;
  ParameterTable table;
  const int words =
      table.add({.name = "words", .shape = {5, 3}, .lookup = true, .storage_rows = 8});
  const int norm = table.add({.name = "norm", .shape = {3}});
  table.allocate(Device{}, DType::kF32, TableUse::kInference);
  table.place(words, ConstView::of(values->data(), {5, 3}), values);
  for (const View& view : {table.value(words), table.compute_value(words)}) {
    EXPECT_EQ(view.raw(), values->data());
    EXPECT_EQ(view.shape(), (Shape{5, 3})) << "without the rows that only storage has";
  }
  const Range range = table.parameters()[static_cast<size_t>(norm)].range;
  EXPECT_EQ(table.value(norm).raw(), table.values().rows(range.begin, range.end).raw());
  EXPECT_EQ(kept.use_count(), 2);
  table.allocate(Device{}, DType::kF32, TableUse::kInference);
  EXPECT_EQ(kept.use_count(), 1);
  EXPECT_EQ(table.value(words).shape(), (Shape{8, 3}));
}

}  // namespace
TEST(Table, InferenceHasValuesAndNoGradients) {
  for (const DType compute : {DType::kF32, DType::kBF16}) {
    ParameterTable table;
    const int weight = table.add({.name = "weight", .shape = {3, 5}, .init = InitialValue::kOnes});
    table.allocate(Device{}, compute, TableUse::kInference);
    table.initialize(1);
    EXPECT_TRUE(table.gradients().empty());
    EXPECT_EQ(table.value(weight).data<float>()[14], 1.0f);
    EXPECT_EQ(table.compute_value(weight).shape(), (Shape{3, 5}));
  }
}

}  // namespace onebit
