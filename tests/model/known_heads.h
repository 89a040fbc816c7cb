// The tensors of a model have the names in model/head_names.h.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "onebit/math/model/head_names.h"
#include "onebit/math/tensor/parameter_table.h"

namespace onebit::model {

// Every tensor is the encoder's or has exactly one prefix of each list.
inline void expect_known(const ParameterTable& table) {
  for (const ParameterEntry& entry : table.entries()) {
    const auto begins = [&](const char* prefix) { return entry.name.starts_with(prefix); };
    const bool of_encoder = begins("bert.") && !begins(kPooler);
    EXPECT_EQ(std::ranges::count_if(kHeadPrefixes, begins), of_encoder ? 0 : 1) << entry.name;
    EXPECT_EQ(std::ranges::count_if(kHeadParts, begins), of_encoder ? 0 : 1) << entry.name;
  }
}

}  // namespace onebit::model
