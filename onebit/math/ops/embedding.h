// The input of an encoder: y = dropout(norm(word[token] + position[position] + segment[segment])).
// The tables of positions and segments may be empty, with their ids and gradients. Gamma may be
// empty, together with beta: then there is no norm. Its kind, and beta alone: see layer_norm.h.
#pragma once

#include "onebit/ground/base/encoder_choices.h"
#include "onebit/math/device/context.h"
#include "onebit/math/kernels/dropout.h"
#include "onebit/math/tensor/view.h"

namespace onebit::ops {

// On a CPU an id outside its table is an error that names the row, and nothing is written.
struct Embedding {
  NormKind kind = NormKind::kLayer;
  ConstView tokens, positions, segments;  // i32 [rows]
  ConstView word;                         // [vocab, hidden]          tables: all f32, or all of
  ConstView position;                     // [max_positions, hidden]  the type of y
  ConstView segment;                      // [segment_types, hidden]
  ConstView gamma, beta;                  // f32 [hidden]
  float epsilon = 1e-12f;
  kernels::Dropout dropout;
  View y;                     // [rows, hidden]  overwritten
  View mean, inverse_stddev;  // f32 [rows]      overwritten (both empty in evaluation or without
                              //                 a norm)
};
void embedding(Context&, const Embedding&);

// Recomputes the sum of embeddings instead of keeping it. Gradients of each table row are added in
// row order, so the result does not depend on the number of threads.
struct EmbeddingBackward {
  NormKind kind = NormKind::kLayer;
  ConstView grad_y;                       // [rows, hidden]
  ConstView tokens, positions, segments;  // i32 [rows]
  ConstView word, position, segment;      // the tables of the forward pass
  ConstView gamma;                        // f32 [hidden]
  ConstView mean, inverse_stddev;         // f32 [rows], not read without a norm
  kernels::Dropout dropout;               // as in the forward pass
  View grad_word;                         // f32 [vocab, hidden]          added to
  View grad_position;                     // f32 [max_positions, hidden]  added to
  View grad_segment;                      // f32 [segment_types, hidden]  added to
  View grad_gamma, grad_beta;             // f32 [hidden]                 added to
};
void embedding_backward(Context&, const EmbeddingBackward&);

}  // namespace onebit::ops
