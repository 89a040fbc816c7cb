// How layers declare their parameters in the parameter table.
#pragma once

#include <string>
#include <vector>

#include "onebit/params/table.h"

namespace onebit::model {

// Indices into the table.
struct LinearParameters {
  int weight = 0;  // [out, in]  decays
  int bias = 0;    // [out]      does not
};
struct NormParameters {
  int gamma = 0, beta = 0;  // [hidden]  neither decays
};

// `name` without ".weight"; biases begin at 0. With `parts`, the matrix is several tensors for
// files, each of equal consecutive rows: "NAME.PART.weight".
LinearParameters declare_linear(params::Table& table, const std::string& name, int64_t out,
                                int64_t in, double stddev,
                                const std::vector<std::string>& parts = {});
// "NAME.weight" and "NAME.bias", 1 and 0.
NormParameters declare_norm(params::Table& table, const std::string& name, int64_t hidden);

}  // namespace onebit::model
