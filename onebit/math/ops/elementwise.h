// Flat element-wise passes: conversion, fill, add.
#pragma once

#include <span>

#include "onebit/math/device/context.h"
#include "onebit/math/tensor/range.h"
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

}  // namespace onebit::ops
