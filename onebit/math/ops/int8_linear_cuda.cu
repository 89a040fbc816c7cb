#include "onebit/ground/base/error.h"
#include "onebit/math/ops/int8_linear.h"

namespace onebit::ops::cuda {

std::string why_no_int8(Context&) {
  return "CUDA devices multiply bf16 instead";
}

bool quantise_constant_weight(Context&, const PackConstantWeight&) {
  fail("CUDA devices have no products of int8");
}

void int8_linear(Context&, const Int8Linear&) {
  fail("CUDA devices have no products of int8");
}

}  // namespace onebit::ops::cuda
