// Replaces amx_product.cc if the compiler lacks AMX instructions.
#include "onebit/ground/base/error.h"
#include "onebit/math/kernels/amx_product.h"

namespace onebit::kernels {

namespace {

[[noreturn]] void refuse() {
  fail("AMX products were requested, but this build has none: check has_amx_products() first");
}

}  // namespace

bool has_amx_products() {
  return false;
}

void amx_pack_left(const AmxOperand&, bf16*) {
  refuse();
}

void amx_pack_right(const AmxOperand&, bf16*) {
  refuse();
}

void amx_block_product(const AmxBlock&) {
  refuse();
}

void amx_tile_product(const Bf16TileProduct&) {
  refuse();
}

}  // namespace onebit::kernels
