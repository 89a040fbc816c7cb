// The only place that owns oneDNN's objects: an engine, a stream and the primitives made so far.
// onebit/ops/linear_cpu.cc describes products to oneDNN.
#pragma once

#include <array>
#include <cstdint>
#include <dnnl.hpp>
#include <map>
#include <unordered_map>

namespace onebit {

// A primitive with the arguments it is run with: memory objects whose pointers are set before each
// run.
struct PreparedPrimitive {
  dnnl::primitive primitive;
  std::unordered_map<int, dnnl::memory> arguments;  // DNNL_ARG_... -> memory
  int64_t scratchpad_bytes = 0;
  uint64_t last_use = 0;
};

class OnednnStream {
 public:
  // The key that distinguishes primitives; its meaning is the caller's.
  using PrimitiveKey = std::array<int64_t, 8>;
  // Packed batches bring new numbers of rows all the time: the least recently used is dropped.
  static constexpr size_t kMaxPrimitives = 512;

  OnednnStream();

  const dnnl::engine& engine() const { return engine_; }
  dnnl::stream& stream() { return stream_; }

  // The primitive under `key`, or null.
  PreparedPrimitive* find_primitive(const PrimitiveKey& key);
  PreparedPrimitive& keep_primitive(const PrimitiveKey& key, PreparedPrimitive primitive);

  // Whether this processor multiplies bf16 natively (AVX-512 BF16 or AMX).
  bool has_native_bf16() const { return has_native_bf16_; }
  // The instruction set that oneDNN uses here: "avx2", "avx512_core_bf16", ...
  static const char* instruction_set();

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  std::map<PrimitiveKey, PreparedPrimitive> primitives_;
  uint64_t uses_ = 0;
  bool has_native_bf16_;
};

}  // namespace onebit
