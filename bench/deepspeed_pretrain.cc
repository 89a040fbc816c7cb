// Pre-trains like `onebit pretrain`, but with DeepSpeed's arithmetic (tests/deepspeed) instead of
// onebit's for the recipe's optimizer (OneBitAdam, OneBitLamb or ZeroOneAdam). For comparisons of
// quality (bench/compression_study.py), in f32, on CPUs, not fast.
//   mpirun -np 2 deepspeed_pretrain pretrain --recipe R --data D --valid V --output O [--threads N]
#include <memory>
#include <string>

#include "bench/study_pretraining.h"
#include "onebit/exchange/optim/lamb.h"
#include "tests/deepspeed/onebit_adam.h"
#include "tests/deepspeed/onebit_lamb.h"
#include "tests/deepspeed/zero_one_adam.h"

namespace {

using namespace onebit;

using bench::Make;

int64_t integer_of(Keys& params, const char* name, int64_t otherwise) {
  params.integer(name, otherwise, at_least(1), bench::kCheckedBefore);
  return otherwise;
}

template <typename Optimizer, typename Options>
Make maker(const Options& options) {
  return [options](const optim::OptimizerRecipe&, const ParameterTable& table,
                   comm::Communicator& communicator, const optim::RunFacts&) {
    return std::make_unique<Optimizer>(options, table, communicator);
  };
}

Make onebit_adam(Keys& params) {
  deepspeed::OneBitAdamOptions options;
  options.adam = optim::read_adam_options(params);
  options.freeze_step = integer_of(params, "freeze_step", options.freeze_step);
  return maker<deepspeed::OneBitAdam>(options);
}

Make onebit_lamb(Keys& params) {
  const optim::LambOptions lamb = optim::read_lamb_options(params);
  deepspeed::OneBitLambOptions options;
  options.adam = lamb.adam;
  options.min_ratio = lamb.min_ratio;
  options.max_ratio = lamb.max_ratio;
  options.freeze_step = integer_of(params, "freeze_step", options.freeze_step);
  return maker<deepspeed::OneBitLamb>(options);
}

Make zero_one_adam(Keys& params) {
  deepspeed::ZeroOneAdamOptions options;
  options.adam = optim::read_moment_options(params);
  options.variance_freeze = integer_of(params, "var_freeze_step", options.variance_freeze);
  options.variance_scaler = integer_of(params, "var_update_scaler", options.variance_scaler);
  options.local_scaler = integer_of(params, "local_step_scaler", options.local_scaler);
  options.local_limit = integer_of(params, "local_step_clipper", options.local_limit);
  return maker<deepspeed::ZeroOneAdam>(options);
}

}  // namespace

int main(int count, char** arguments) {
  const bench::Replacement replacement{.describes = "DeepSpeed's arithmetic",
                                       .make = [](const std::string& type, Keys& params) {
                                         if (type == "OneBitAdam") return onebit_adam(params);
                                         if (type == "OneBitLamb") return onebit_lamb(params);
                                         if (type == "ZeroOneAdam") return zero_one_adam(params);
                                         return bench::Make();
                                       }};
  return bench::pretrain(count, arguments,
                         "Pre-trains with DeepSpeed's arithmetic of the 1-bit optimizers",
                         replacement);
}
