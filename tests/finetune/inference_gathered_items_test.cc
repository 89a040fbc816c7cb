#include "onebit/training/finetune/inference.h"

#include <gtest/gtest.h>

#include "onebit/exchange/comm/thread_communicator.h"

namespace onebit::finetune {
namespace {

// Item i has i % 3 numbers, at places that follow each other.
TEST(GatheredItems, EveryRankHasTheNumbersOfAll) {
  std::vector<int32_t> lengths;
  std::vector<size_t> begins = {0};
  for (int32_t i = 0; i < 11; ++i) {
    lengths.push_back(1 + i % 4);
    begins.push_back(begins.back() + static_cast<size_t>(i % 3));
  }
  for (const int world : {1, 2, 3}) {
    comm::run_thread_world(world, [&](comm::Communicator& communicator) {
      const batches::LengthSweep sweep(lengths, 2, world, communicator.rank());
      std::vector<float> all(begins.back(), -1);
      const auto values_of = [&](uint32_t item) {
        return std::span(all).subspan(begins[item], begins[item + 1] - begins[item]);
      };
      for (const uint32_t item : sweep.items_of(communicator.rank())) {
        for (float& value : values_of(item)) value = static_cast<float>(item);
      }
      gather_items(sweep, communicator, values_of);
      for (uint32_t item = 0; item < 11; ++item) {
        for (const float value : values_of(item)) EXPECT_EQ(value, static_cast<float>(item));
      }
    });
  }
}

// Each item is computed once, by one rank, in batches of two.
TEST(GatheredItems, EveryRankHasWhatAnyHasPredicted) {
  const std::vector<int32_t> lengths = {3, 1, 4, 1, 5, 9, 2};
  for (const int world : {1, 3}) {
    comm::run_thread_world(world, [&](comm::Communicator& communicator) {
      std::vector<float> all(2 * lengths.size(), -1);
      const auto values_of = [&](uint32_t item) { return std::span(all).subspan(2 * item, 2); };
      std::vector<uint32_t> computed;
      predict_items(lengths, {.items = 2, .tokens = 8}, communicator, values_of,
                    [&](std::span<const uint32_t> items) {
                      EXPECT_LE(items.size(), 2u);
                      // The lengths 9 and 5 would be 14 tokens together.
                      EXPECT_TRUE(items.size() == 1 || lengths[items[0]] + lengths[items[1]] <= 8);
                      computed.insert(computed.end(), items.begin(), items.end());
                      Tensor values(Device{}, DType::kF32, {static_cast<int64_t>(items.size()), 2});
                      float* to = values.data<float>();
                      for (const uint32_t item : items) {
                        *to++ = static_cast<float>(item);
                        *to++ = static_cast<float>(lengths[item]);
                      }
                      return values;
                    });
      const batches::LengthSweep sweep(lengths, 2, world, communicator.rank());
      EXPECT_EQ(computed, sweep.items_of(communicator.rank()));
      for (uint32_t item = 0; item < lengths.size(); ++item) {
        EXPECT_EQ(values_of(item)[0], static_cast<float>(item));
        EXPECT_EQ(values_of(item)[1], static_cast<float>(lengths[item]));
      }
    });
  }
}

}  // namespace
}  // namespace onebit::finetune
