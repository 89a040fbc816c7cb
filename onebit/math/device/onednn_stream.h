// The only owner of oneDNN's objects: an engine, a stream and a cache of primitives.
// onebit/math/ops/linear_cpu.cc describes products to oneDNN.
#pragma once

#include <array>
#include <cstdint>
#include <dnnl.hpp>
#include <map>
#include <unordered_map>

#include "onebit/math/device/onednn_packed_weights.h"

namespace onebit {

// A primitive with its execution arguments: memory objects whose pointers are set before each
// execution.
struct PreparedPrimitive {
  dnnl::primitive primitive;
  std::unordered_map<int, dnnl::memory> arguments;  // DNNL_ARG_... -> memory
  int64_t scratchpad_bytes = 0;
  uint64_t last_use = 0;
};

class OnednnStream {
 public:
  // Identifies a primitive; callers define its meaning.
  using PrimitiveKey = std::array<int64_t, 8>;
  // Packed batches keep bringing new numbers of rows: the least recently used primitive is evicted.
  static constexpr size_t kMaxPrimitives = 512;

  OnednnStream();

  const dnnl::engine& engine() const { return engine_; }
  dnnl::stream& stream() { return stream_; }

  // Returns the primitive under `key`, or null.
  PreparedPrimitive* find_primitive(const PrimitiveKey& key);
  PreparedPrimitive& keep_primitive(const PrimitiveKey& key, PreparedPrimitive primitive);

  PackedWeights& packed_weights() { return packed_weights_; }

  // Whether this processor multiplies bf16 natively (AVX-512 BF16 or AMX).
  bool has_native_bf16() const { return has_native_bf16_; }
  // The instruction set that oneDNN uses here: "avx2", "avx512_core_bf16", ...
  static const char* instruction_set();

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  std::map<PrimitiveKey, PreparedPrimitive> primitives_;
  PackedWeights packed_weights_;
  uint64_t uses_ = 0;
  bool has_native_bf16_;
};

}  // namespace onebit
