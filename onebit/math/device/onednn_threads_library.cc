#include "onebit/math/device/onednn_stream.h"

namespace onebit {

dnnl::stream make_onednn_stream(const dnnl::engine& engine, int) {
  return dnnl::stream(engine);
}

void plan_for_threads(int) {}

}  // namespace onebit
