// Every kind of optimizer, with the table of bytes per parameter in docs/optimizers.md.
#pragma once

#include <memory>
#include <vector>

#include "onebit/exchange/one_bit/onebit_adam.h"
#include "onebit/exchange/one_bit/onebit_lamb.h"
#include "onebit/exchange/one_bit/zero_one_adam.h"
#include "onebit/exchange/optim/adam.h"
#include "onebit/exchange/optim/lamb.h"

namespace onebit::optim {

struct Row {
  const char* name;
  std::shared_ptr<const OptimizerRecipe> optimizer;
  double alone;          // on one rank
  double fixed, shared;  // on several ranks, which divide `shared` among them
  double staged = 0;     // up to a MiB, which is all values of a small table
};

inline std::vector<Row> optimizer_table() {
  const FreezeOptions freeze{.step = 3};
  const ZeroOneOptions schedule{
      .variance_freeze = 5, .variance_scaler = 3, .local_scaler = 2, .local_limit = 2};
  return {{"AdamW", adam_recipe({}), 8, 8, 0},
          {"Lamb", lamb_recipe({}), 8, 8, 0},
          {"OneBitAdam", onebit_adam_recipe({.freeze = freeze}), 8, 8, 8},
          {"OneBitLamb", onebit_lamb_recipe({.freeze = freeze}), 8, 8, 12},
          {"ZeroOneAdam", zero_one_adam_recipe({.schedule = schedule}), 8, 20, 8, 4}};
}

}  // namespace onebit::optim
