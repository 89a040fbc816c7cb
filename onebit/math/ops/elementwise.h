// Flat element-wise passes: conversion, fill, add.
#pragma once

#include <span>

#include "onebit/math/device/context.h"
#include "onebit/math/kernels/dropout.h"
#include "onebit/math/tensor/view.h"

namespace onebit::ops {

// to = from, between any two of f32, bf16 and f16, rounded to nearest even. Both have the same
// number of elements.
struct Cast {
  ConstView from;
  View to;  // overwritten
};
void cast(Context&, const Cast&);

// x = value. f32, bf16 or f16.
void fill(Context&, View x, float value);

// x = 0 in these ranges of its elements, whose bounds are multiples of 16. f32.
void fill_zero(Context&, View x, std::span<const Range> ranges);

// y += x. Any two of f32, bf16, f16. The sum is rounded to y's type.
struct Add {
  ConstView x;
  View y;  // added to
};
void add(Context&, const Add&);

// Dropout whose mask is a pure function of (seed, site, row key, column): the same on every device,
// for any number of ranks and threads and after any resume. Masks are not stored. The backward pass
// draws them again. The exact rule is in dropout_mask.h.

// y = x with dropped elements zero and kept ones scaled by 65536 / (65536 - threshold).
struct DropoutForward {
  ConstView x;  // [rows, columns]
  kernels::Dropout dropout;
  View y;  // [rows, columns]  overwritten, may be x
};
void dropout(Context&, const DropoutForward&);

struct DropoutBackward {
  ConstView grad_y;          // [rows, columns]
  kernels::Dropout dropout;  // as in the forward pass
  View grad_x;               // [rows, columns]  overwritten, may be grad_y
};
void dropout_backward(Context&, const DropoutBackward&);

}  // namespace onebit::ops
