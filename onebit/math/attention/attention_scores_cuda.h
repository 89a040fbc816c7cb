// Windows and a bias of scores, for attention's kernels. They are other instances of the kernels,
// so that those for whole sequences contain none of it. For *_cuda.cu only.
#pragma once

#include "onebit/math/attention/attention_place_cuda.h"
#include "onebit/math/attention/attention_tile_cuda.h"

namespace onebit::ops::cuda {

// What a kernel in tiles computes scores of: all pairs of a sequence's tokens, as for BERT, or the
// pairs of a window, and with a bias of scores.
struct WholeSequence {
  static constexpr bool kChangesScores = false;

  template <typename T>
  __device__ static int first_tile(const AttentionCall<T>&, const TilePlace&) {
    return 0;
  }
  template <int kRows, typename T>
  __device__ static int end(const AttentionCall<T>&, const TilePlace& at) {
    return at.length;
  }
};
struct WindowOrBias {
  static constexpr bool kChangesScores = true;

  template <typename T>
  __device__ static int first_tile(const AttentionCall<T>& a, const TilePlace& at) {
    return a.first_seen(at.begin) / kTile * kTile;
  }
  template <int kRows, typename T>
  __device__ static int end(const AttentionCall<T>& a, const TilePlace& at) {
    return a.end_of_seen(at.begin + kRows, at.length);
  }
};

// Calls body with one of these. A is Attention or AttentionBackward.
template <class A, class Body>
void with_scores(const A& a, const Body& body) {
  if (a.window < 0 && a.score_bias.empty()) return body(WholeSequence{});
  body(WindowOrBias{});
}

// The pairs of a warp's 16 tokens with those from `other` on, one for each element of its part of a
// product. The warp's are queries or keys.
template <class Scores, bool kRowsAreQueries, int kBlocks>
class TilePairs {
 public:
  __device__ TilePairs(const TilePlace& at, int other)
      : at_(at), row_(at.begin + at.warp * 16), other_(other) {}

  // Adds the bias to products, which are scaled later.
  template <typename T>
  __device__ void add_bias(const AttentionCall<T>& a, float (&product)[kBlocks][4]) const {
    if constexpr (Scores::kChangesScores) {
      if (a.score_bias == nullptr) return;
      const float factor = 1.0f / a.scale;
      for_pairs([&](int j, int i, int row, int column) {
        if (row >= at_.length || column >= at_.length) return;
        const float bias = a.bias(at_.head, kRowsAreQueries ? column - row : row - column);
        product[j][i] = fmaf(bias, factor, product[j][i]);
      });
    }
  }
  // Sets what is outside the window.
  template <typename T>
  __device__ void set_unseen(const AttentionCall<T>& a, float value,
                             float (&of_pairs)[kBlocks][4]) const {
    if constexpr (Scores::kChangesScores) {
      const int last = other_ + 8 * kBlocks - 1;
      if (row_ + 15 - other_ <= a.window && last - row_ <= a.window) return;  // all are inside
      for_pairs([&](int j, int i, int row, int column) {
        if (abs(row - column) > a.window) of_pairs[j][i] = value;
      });
    }
  }

 private:
  // Calls body(block, element, the warp's token, the other one).
  template <class Body>
  __device__ void for_pairs(const Body& body) const {
#pragma unroll
    for (int j = 0; j < kBlocks; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        body(j, i, row_ + at_.lane / 4 + i / 2 * 8, other_ + j * 8 + at_.lane % 4 * 2 + i % 2);
      }
    }
  }

  const TilePlace& at_;
  int row_, other_;
};

}  // namespace onebit::ops::cuda
