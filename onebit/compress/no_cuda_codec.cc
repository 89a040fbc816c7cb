// Stands in for sign_codec_cuda.cu where CUDA is not built in.
#include "onebit/base/error.h"
#include "onebit/compress/sign_codec_backend.h"

namespace onebit::compress {
namespace {

[[noreturn]] void fail_without_cuda() {
  fail("the sign codec for CUDA memory is not built in: build with -DONEBIT_CUDA=ON");
}

}  // namespace

void encode_cuda(Context&, const Encode&) {
  fail_without_cuda();
}
void average_cuda(Context&, const Average&) {
  fail_without_cuda();
}
void decode_cuda(Context&, const Decode&) {
  fail_without_cuda();
}

}  // namespace onebit::compress
