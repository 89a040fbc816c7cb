// Stands in for dense_codec_cuda.cu where CUDA is not built in.
#include "onebit/base/error.h"
#include "onebit/comm/dense_codec.h"

namespace onebit::comm::cuda {
namespace {

[[noreturn]] void fail_without_cuda() {
  fail("the dense exchange for CUDA memory is not built in: build with -DONEBIT_CUDA=ON");
}

}  // namespace

void narrow_to_wire(Context&, ConstView, View) {
  fail_without_cuda();
}
void widen_from_wire(Context&, ConstView, View) {
  fail_without_cuda();
}
void average_on_wire(Context&, ConstView, View) {
  fail_without_cuda();
}

}  // namespace onebit::comm::cuda
