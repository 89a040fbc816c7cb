// The only place that knows oneDNN's objects: an engine, a stream and a scratchpad for one thread
// of control. Everything else about oneDNN stands in onebit/ops/matmul_cpu.cc.
#pragma once

#include <dnnl.hpp>

#include "onebit/device/buffer.h"

namespace onebit {

class OnednnDoor {
 public:
  OnednnDoor();

  const dnnl::engine& engine() const { return engine_; }
  dnnl::stream& stream() { return stream_; }
  // Whether this processor multiplies bf16 natively (AVX-512 BF16 or AMX).
  bool has_native_bf16() const { return has_native_bf16_; }
  // "avx2", "avx512_core_bf16"...: what oneDNN runs on here.
  static const char* instruction_set();

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  bool has_native_bf16_;
};

}  // namespace onebit
