#include "onebit/math/kernels/amx_product.h"

#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "hwy/base.h"
#include "onebit/math/device/libraries.h"
#include "onebit/math/kernels/amx_tiles_inl.h"

namespace onebit::kernels {
namespace {

// By CPUID: not every compiler knows these names in __builtin_cpu_supports().
bool processor_has_tiles() {
  constexpr unsigned kTile = 1u << 24, kBf16 = 1u << 22;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kTile) != 0 && (d & kBf16) != 0;
}

// Linux saves the tiles of a process only after it has asked for that.
bool tiles_are_permitted() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // asm/prctl.h, since Linux 5.16
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace

bool has_amx_products() {
  static const bool here =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bf16") &&
      processor_has_tiles() && onednn_uses_tiles() && tiles_are_permitted();
  return here;
}

}  // namespace onebit::kernels

// The functions up to HWY_POP_ATTRIBUTES are compiled for these instructions in every build.
HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512vl,avx512bf16,amx-tile,amx-bf16,prfchw")
namespace onebit::kernels {

namespace {

HWY_INLINE __mmask32 lanes32(int64_t count) {
  return count >= 32 ? ~__mmask32{0}
                     : static_cast<__mmask32>((1u << std::max<int64_t>(count, 0)) - 1);
}

// The pairs of the lanes of two vectors of 16-bit words.
HWY_INLINE __m512i paired(__m256i first, __m256i second) {
  return _mm512_or_si512(_mm512_cvtepu16_epi32(first),
                         _mm512_slli_epi32(_mm512_cvtepu16_epi32(second), 16));
}

// Reads the vectors of a tile whose lines are apart: one line each, as a left tile has them.
HWY_INLINE void read_lines(const AmxOperand& a, int64_t line, int64_t k, __m512i (&x)[16]) {
  const bf16* from = a.first + line * a.stride + k;
  if (a.lines - line >= kTileLines && a.depth - k >= kTileDepth) {
    for (int64_t i = 0; i < kTileLines; ++i) x[i] = _mm512_loadu_si512(from + i * a.stride);
    return;
  }
  const __mmask32 there = lanes32(a.depth - k);
  for (int64_t i = 0; i < kTileLines; ++i) {
    x[i] = line + i < a.lines ? _mm512_maskz_loadu_epi16(there, from + i * a.stride)
                              : _mm512_setzero_si512();
  }
}

// Reads the vectors of a tile whose lines are neighbours: one pair of 16 lines each, as a right
// tile has them.
HWY_INLINE void read_pairs(const AmxOperand& a, int64_t line, int64_t k, __m512i (&x)[16]) {
  const bf16* from = a.first + k * a.stride + line;
  if (a.lines - line >= kTileLines && a.depth - k >= kTileDepth) {
    for (int64_t i = 0; i < kTileLines; ++i) {
      const bf16* pair = from + 2 * i * a.stride;
      x[i] = paired(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(pair)),
                    _mm256_loadu_si256(reinterpret_cast<const __m256i*>(pair + a.stride)));
    }
    return;
  }
  const __mmask16 there = lanes16(a.lines - line);
  const auto row = [&](int64_t i) {
    return k + i < a.depth ? _mm256_maskz_loadu_epi16(there, from + i * a.stride)
                           : _mm256_setzero_si256();
  };
  for (int64_t i = 0; i < kTileLines; ++i) x[i] = paired(row(2 * i), row(2 * i + 1));
}

// `is_left`: the vectors of a tile are lines, otherwise pairs.
template <bool is_left>
void pack(const AmxOperand& a, bf16* to) {
  const int64_t depth = amx_padded(a.depth), strip = kAmxStrip * depth;
  const auto write = [&](int64_t line, int64_t k, const __m512i(&x)[16]) {
    write_tile(x, to + line / kAmxStrip * strip + k * kAmxStrip +
                      line % kAmxStrip / kTileLines * kTileElements);
  };
  // In the order of memory, in runs as long as possible.
  __m512i x[16];
  if (a.lines_neighbour) {
    for (int64_t k = 0; k < depth; k += kTileDepth) {
      for (int64_t line = 0; line < amx_padded(a.lines); line += kTileLines) {
        read_pairs(a, line, k, x);
        if (is_left) transpose(x);
        write(line, k, x);
      }
    }
    return;
  }
  for (int64_t line = 0; line < amx_padded(a.lines); line += kTileLines) {
    for (int64_t k = 0; k < depth; k += kTileDepth) {
      read_lines(a, line, k, x);
      if (!is_left) transpose(x);
      write(line, k, x);
    }
  }
}

// Lines of memory that are needed soon, which a loop requests a few at a time.
struct Soon {
  const std::byte* first;
  int64_t lines;
};

// What else multiplying two strips does meanwhile.
struct Meanwhile {
  Soon right;         // of the next strip
  std::byte* result;  // null, or where the results will be stored
  int64_t result_row, result_bytes;
};

HWY_INLINE void request(const Meanwhile& m, int64_t step, int64_t steps) {
  const int64_t end = m.right.lines * (step + 1) / steps;
  for (int64_t line = m.right.lines * step / steps; line < end; ++line) {
    _mm_prefetch(m.right.first + line * 64, _MM_HINT_T1);
  }
  if (m.result == nullptr) return;
  for (int64_t i = kAmxStrip * step / steps; i < kAmxStrip * (step + 1) / steps; ++i) {
    for (int64_t line = 0; line < m.result_bytes; line += 64) {
      __builtin_prefetch(m.result + i * m.result_row + line, 1);
    }
  }
}

// A strip of the left operand times one of the right, two tiles each: tiles 0 to 3 are the sums
// [kAmxStrip, kAmxStrip].
HWY_INLINE void multiply_strips(const bf16* left, const bf16* right, int64_t steps, float* sums,
                                bool first, const Meanwhile& meanwhile) {
  constexpr int64_t kRowBytes = kAmxStrip * sizeof(float);
  float* const lower = sums + kTileLines * kAmxStrip;
  if (first) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, sums, kRowBytes);
    _tile_loadd(1, sums + kTileLines, kRowBytes);
    _tile_loadd(2, lower, kRowBytes);
    _tile_loadd(3, lower + kTileLines, kRowBytes);
  }
  for (int64_t i = 0; i < steps; ++i, left += 2 * kTileElements, right += 2 * kTileElements) {
    _tile_loadd(6, right, 64);
    _tile_loadd(4, left, 64);
    _tile_loadd(7, right + kTileElements, 64);
    _tile_loadd(5, left + kTileElements, 64);
    request(meanwhile, i, steps);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sums, kRowBytes);
  _tile_stored(1, sums + kTileLines, kRowBytes);
  _tile_stored(2, lower, kRowBytes);
  _tile_stored(3, lower + kTileLines, kRowBytes);
}

int64_t result_bytes(const AmxBlock& b) {
  return b.is_bf16 ? 2 : 4;
}

void store(const AmxBlock& b) {
  const int64_t strips = amx_padded(b.rows) / kAmxStrip;
  for (int64_t row = 0; row < b.rows; ++row) {
    const float* from = b.sums + row * kAmxStrip;
    for (int64_t column = 0; column < b.columns; column += kTileLines) {
      const __mmask16 lanes = lanes16(b.columns - column);
      const int64_t strip = column / kAmxStrip * strips * kAmxStrip * kAmxStrip;
      __m512 value = _mm512_load_ps(from + strip + column % kAmxStrip);
      if (b.bias != nullptr) {
        value = _mm512_add_ps(value, _mm512_maskz_loadu_ps(lanes, b.bias + column));
      }
      if (!b.is_bf16) {
        float* to = static_cast<float*>(b.c) + row * b.c_row + column;
        if (b.add) value = _mm512_add_ps(value, _mm512_maskz_loadu_ps(lanes, to));
        _mm512_mask_storeu_ps(to, lanes, value);
        continue;
      }
      bf16* to = static_cast<bf16*>(b.c) + row * b.c_row + column;
      if (b.add) {
        const __m512i before = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes, to));
        value = _mm512_add_ps(value, _mm512_castsi512_ps(_mm512_slli_epi32(before, 16)));
      }
      _mm256_mask_storeu_epi16(to, lanes, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(value)));
    }
  }
}

}  // namespace

void amx_pack_left(const AmxOperand& a, bf16* to) {
  pack<true>(a, to);
}

void amx_pack_right(const AmxOperand& a, bf16* to) {
  pack<false>(a, to);
}

void amx_block_product(const AmxBlock& b) {
  // So much of a right strip stays in the first cache for all left strips.
  constexpr int64_t kDepth = 256, kStripElements = kAmxStrip * kAmxStrip;
  const int64_t depth = amx_padded(b.depth), strips = amx_padded(b.rows) / kAmxStrip;
  const TileShapes shapes;
  finish_stores();
  _tile_loadconfig(&shapes);
  for (int64_t column = 0; column < b.columns; column += kAmxStrip) {
    float* const sums = b.sums + column / kAmxStrip * strips * kStripElements;
    for (int64_t k = 0; k < depth; k += kDepth) {
      const int64_t deep = std::min(kDepth, depth - k);
      const bf16* right = b.right + column * depth + k * kAmxStrip;
      // What follows it in memory is next.
      const bool is_last = k + deep == depth;
      const int64_t next = is_last ? std::min(kDepth, depth) : std::min(kDepth, depth - k - deep);
      const bool has_next = !is_last || column + kAmxStrip < b.columns;
      const int64_t next_lines = has_next ? next * kAmxStrip * 2 / 64 : 0;
      for (int64_t strip = 0; strip < strips; ++strip) {
        const int64_t begin = next_lines * strip / strips;
        const int64_t end = next_lines * (strip + 1) / strips;
        Meanwhile meanwhile{
            .right = {reinterpret_cast<const std::byte*>(right + deep * kAmxStrip) + begin * 64,
                      end - begin},
            .result = nullptr,
            .result_row = b.c_row * result_bytes(b),
            .result_bytes = kAmxStrip * result_bytes(b)};
        if (is_last && (strip + 1) * kAmxStrip <= b.rows && column + kAmxStrip <= b.columns) {
          meanwhile.result = static_cast<std::byte*>(b.c) +
                             (strip * kAmxStrip * b.c_row + column) * result_bytes(b);
        }
        multiply_strips(b.left + strip * kAmxStrip * depth + k * kAmxStrip, right,
                        deep / kTileDepth, sums + strip * kStripElements, k == 0, meanwhile);
      }
    }
  }
  _tile_release();
  store(b);
}

}  // namespace onebit::kernels
HWY_POP_ATTRIBUTES
