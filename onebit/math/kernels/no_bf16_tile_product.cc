// Replaces bf16_tile_product.cc if compiler or processor lack bf16 instructions.
#include "onebit/ground/base/error.h"
#include "onebit/math/kernels/bf16_tile_product.h"

namespace onebit::kernels {

namespace {

[[noreturn]] void refuse() {
  fail("bf16 products were requested, but this build has none: check has_bf16_products() first");
}

}  // namespace

bool has_bf16_products() {
  return false;
}

void bf16_tile_product(const Bf16TileProduct&) {
  refuse();
}

void pair_columns(const bf16*, int64_t, int64_t, int64_t, bf16*, int64_t) {
  refuse();
}

void pair_rows(const bf16*, int64_t, int64_t, int64_t, bf16*, int64_t) {
  refuse();
}

void round_to_row_pairs(const float*, int64_t, int64_t, int64_t, bf16*, int64_t) {
  refuse();
}

void round_row(const float*, int64_t, float, bf16*) {
  refuse();
}

}  // namespace onebit::kernels
