// The only owner of oneDNN's objects: an engine, a stream and a cache of primitives.
// onebit/math/ops/linear_cpu.cc describes products to oneDNN.
#pragma once

#include <sys/types.h>
#include <dnnl.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "onebit/math/device/buffer.h"

namespace onebit {

// What turns sums of products with a rounded weight into numbers (ops/int8_linear.h).
struct QuantisedColumns {
  Buffer scales, sums;  // f32 and i32, one of each per column: per output
};

// A rounded weight and how oneDNN shall keep it.
struct QuantisedWeight {
  dnnl::memory::desc plain, layout;
  const void* values;  // as `plain` describes them
  QuantisedColumns columns;
};

// Copies of weights in the layouts in which oneDNN multiplies them fastest. Without one, every
// product rearranges the weights, which is felt when a batch has few tokens.
class PackedWeights {
 public:
  // Promises that the memory in [begin, end) keeps its contents until changed() or remove(). It may
  // be promised several times. Copies last until the last promise is taken back.
  void add(const void* begin, const void* end);
  // The memory that starts at `begin` was overwritten: its copies are made anew when they are used.
  void changed(const void* begin);
  // Nobody will write the weights again, and nobody but packed() will read them: of the memory in
  // [begin, end), which has a current copy, only the address counts from now on. The promise of
  // add() must last.
  void let_go(const void* begin, const void* end);
  // As let_go(), of weights whose only copy is `rounded`.
  void quantise(const void* begin, const void* end, QuantisedWeight rounded, dnnl::stream& stream);
  // Takes the promise back and drops the copies of these weights.
  void remove(const void* begin);

  bool covers(const void* weights) const;
  // Null unless quantise() was given the weights.
  const QuantisedColumns* quantised(const void* weights) const;
  // `weights`, which add() covers and `plain` describes, in `layout`: a copy, or the weights
  // themselves if they have this layout.
  const void* packed(const void* weights, const dnnl::memory::desc& plain,
                     const dnnl::memory::desc& layout, dnnl::stream& stream);
  // Makes the copy of weights that are not written yet: `values` are what they are to contain.
  // False: they have this layout, so there is none.
  bool pack(const void* weights, const void* values, const dnnl::memory::desc& plain,
            const dnnl::memory::desc& layout, dnnl::stream& stream);

 private:
  using Address = const std::byte*;
  struct Copy {
    // A square matrix and its transpose start at one address, and their layouts are equal.
    dnnl::memory::desc plain, layout;
    Buffer values;
    bool current = false;
  };
  struct Range {
    Address end;
    int users = 0;
    std::map<Address, std::vector<Copy>> copies;  // by the address of the weights
    std::map<Address, Address> let_go = {};       // begin and end of weights
    std::map<Address, QuantisedColumns> quantised = {};
  };
  using Ranges = std::map<Address, Range>;  // by their begin

  Ranges::const_iterator range_of(const void* weights) const;
  static bool is_let_go(const Range& range, Address weights);
  const void* copy_of(const void* weights, const void* values, const dnnl::memory::desc& plain,
                      const dnnl::memory::desc& layout, dnnl::stream& stream);

  Ranges ranges_;
};

// A primitive with its execution arguments: memory objects whose pointers are set before each
// execution.
struct PreparedPrimitive {
  dnnl::primitive primitive;
  std::unordered_map<int, dnnl::memory> arguments;  // DNNL_ARG_... -> memory
  int64_t scratchpad_bytes = 0;
  uint64_t last_use = 0;
};

// destination = source . weights + bias
struct ProductPlan {
  dnnl::memory::desc source, weights, destination;  // weights of any layout: oneDNN chooses it
  const dnnl::memory::desc* bias = nullptr;
  bool accumulate = false;  // adds to the destination instead
};

class OnednnStream {
 public:
  // Identifies a primitive. Callers define its meaning.
  using PrimitiveKey = std::array<int64_t, 8>;
  // Packed batches keep bringing new numbers of rows: the least recently used primitive is evicted.
  static constexpr size_t kMaxPrimitives = 512;

  explicit OnednnStream(int threads);

  const dnnl::engine& engine() const { return engine_; }
  dnnl::stream& stream() { return stream_; }
  int threads() const { return threads_; }

  // Returns the primitive under `key`, or null.
  PreparedPrimitive* find_primitive(const PrimitiveKey& key);
  PreparedPrimitive& keep_primitive(const PrimitiveKey& key, PreparedPrimitive primitive);

  // Throws dnnl::error if oneDNN has no such product.
  PreparedPrimitive prepare_product(const ProductPlan& product);

  PackedWeights& packed_weights() { return packed_weights_; }

  // Whether this processor multiplies bf16 natively (AVX-512 BF16 or AMX).
  bool has_native_bf16() const { return has_native_bf16_; }
  // Whether it multiplies int8 with sums of 32 bits (VNNI or AMX).
  static bool has_native_int8();
  // The instruction set that oneDNN uses here: "avx2", "avx512_core_bf16", ...
  static const char* instruction_set();

 private:
  int threads_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  std::map<PrimitiveKey, PreparedPrimitive> primitives_;
  pid_t process_;  // that made them
  PackedWeights packed_weights_;
  uint64_t uses_ = 0;
  bool has_native_bf16_;
};

// The threads of oneDNN: its own (onednn_threads_library.cc), or the ones of onebit's loops
// (onednn_threads_pool.cc), where it was built to take the threads that it is given.

dnnl::stream make_onednn_stream(const dnnl::engine& engine, int threads);

// Primitives that the calling thread creates next are planned for the threads of such a stream.
void plan_for_threads(int threads);

// The interfaces that differ between oneDNN 2 (2.6 and later) and oneDNN 3. CMake picks
// onednn_version_2.cc or onednn_version_3.cc according to the version it finds.

struct OnednnInstructionSet {
  dnnl::cpu_isa isa;
  const char* name;
  // oneDNN multiplies bf16 on AVX-512 and later, but emulated: only some sets have the instruction.
  bool multiplies_bf16 = false;
  bool multiplies_int8 = false;  // u8 * s8 with sums of 32 bits, which VNNI and AMX have
  bool has_tiles = false;        // AMX
};

// The instruction sets that this version names and oneDNN 2.6 does not.
std::span<const OnednnInstructionSet> newer_onednn_instruction_sets();

// destination = source * weights + bias for row-major matrices, with the post-operations of
// `attributes`. `bias` is null or [1, n] f32. Throws dnnl::error if oneDNN has no such product.
dnnl::matmul::primitive_desc plan_product(const dnnl::engine& engine,
                                          const dnnl::memory::desc& source,
                                          const dnnl::memory::desc& weights,
                                          const dnnl::memory::desc* bias,
                                          const dnnl::memory::desc& destination,
                                          const dnnl::primitive_attr& attributes);

}  // namespace onebit
