#include "onebit/tasks/gathered_items.h"

#include <gtest/gtest.h>

#include "onebit/comm/thread_communicator.h"

namespace onebit::tasks {
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
      const data::LengthSweep sweep(lengths, 2, world, communicator.rank());
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

}  // namespace
}  // namespace onebit::tasks
