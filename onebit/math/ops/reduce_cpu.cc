#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "onebit/math/ops/reduce_cpu.cc"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <atomic>
#include <cmath>

#include "onebit/math/kernels/column_partials.h"
#include "onebit/math/kernels/cpu_op.h"
#include "onebit/math/kernels/for_parts.h"
#include "onebit/math/kernels/simd_inl.h"
#include "onebit/math/ops/reduce.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::ops::HWY_NAMESPACE {

using namespace kernels;
using namespace kernels::HWY_NAMESPACE;

namespace {

using F64 = hn::ScalableTag<double>;
using Doubles = hn::Vec<F64>;

// Sums are computed in f64, in blocks that do not depend on the number of threads.
constexpr int64_t kSumBlockElements = 32768;

HWY_INLINE Doubles widened(const float* from) {
  return hn::PromoteTo(F64(), hn::LoadU(hn::Rebind<float, F64>(), from));
}

// Sum of term(index) over one block, where term returns f64 vectors of [index, index + lanes).
template <class Term, class Single>
HWY_INLINE double block_sum(int64_t begin, int64_t end, const Term& term, const Single& single) {
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(F64()));
  Doubles total[4] = {hn::Zero(F64()), hn::Zero(F64()), hn::Zero(F64()), hn::Zero(F64())};
  int64_t i = begin;
  for (; i + 4 * lanes <= end; i += 4 * lanes) {
    for (int chain = 0; chain < 4; ++chain) {
      total[chain] = hn::Add(total[chain], term(i + chain * lanes));
    }
  }
  const Doubles pairs = hn::Add(hn::Add(total[0], total[1]), hn::Add(total[2], total[3]));
  double sum = hn::GetLane(hn::SumOfLanes(F64(), pairs));
  for (; i < end; ++i) sum += single(i);
  return sum;
}

template <class Term, class Single>
double blocked_sum(Context& context, int64_t count, const Term& term, const Single& single) {
  const int64_t blocks = (count + kSumBlockElements - 1) / kSumBlockElements;
  const auto memory = context.scratch().take(blocks * 8);
  double* partial = memory.as<double>();
  for_parts(context, blocks, 1, [&](int64_t, int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t first = block * kSumBlockElements;
      partial[block] = block_sum(first, std::min(first + kSumBlockElements, count), term, single);
    }
  });
  double sum = 0;
  for (int64_t block = 0; block < blocks; ++block) sum += partial[block];
  return sum;
}

double squared_norm(Context& context, ConstView a) {
  const float* x = a.data<float>();
  return blocked_sum(
      context, a.elements(),
      [&](int64_t i) HWY_ATTR { return hn::Mul(widened(x + i), widened(x + i)); },
      [&](int64_t i) HWY_ATTR { return double{x[i]} * double{x[i]}; });
}

double absolute_sum(Context& context, ConstView a) {
  const float* x = a.data<float>();
  return blocked_sum(
      context, a.elements(), [&](int64_t i) HWY_ATTR { return hn::Abs(widened(x + i)); },
      [&](int64_t i) HWY_ATTR { return std::abs(double{x[i]}); });
}

// x * 0 is 0 for finite x and NaN otherwise.
bool all_finite(Context& context, ConstView a) {
  std::atomic<bool> finite = true;
  with_float_type(a.dtype(), [&](auto tag) HWY_ATTR {
    const auto* x = a.template data<decltype(tag)>();
    for_parts(context, a.elements(), grain_for(1),
              [&](int64_t, int64_t begin, int64_t end) HWY_ATTR {
                Chains rubbish;
                for_lanes_chained(end - begin, [&](int64_t i, auto lanes, auto chain) HWY_ATTR {
                  rubbish.chain[chain] =
                      hn::MulAdd(load(x + begin + i, lanes), zero(), rubbish.chain[chain]);
                });
                if (!(rubbish.sum() == 0.0f)) finite = false;
              });
  });
  return finite;
}

void column_sum(Context& context, const ColumnSum& a) {
  const int64_t rows = a.x.extent(0), columns = a.x.extent(1);
  const RowBlocks blocks(rows);
  ColumnPartials sums(context, blocks, columns, 1);
  with_float_type(a.x.dtype(), [&](auto tag) HWY_ATTR {
    const auto* x = a.x.template data<decltype(tag)>();
    for_parts(context, blocks.count(), grain_for(columns * blocks.rows_per_block()),
              [&](int64_t, int64_t begin, int64_t end) HWY_ATTR {
                for (int64_t block = begin; block < end; ++block) {
                  sums.clear(block);
                  float* partial = sums.of(0, block);
                  for (int64_t row = blocks.begin(block); row < blocks.end(block); ++row) {
                    for_lanes(columns, [&](int64_t i, auto lanes) HWY_ATTR {
                      const Vector value = load(x + row * columns + i, lanes);
                      store(hn::Add(load(partial + i, lanes), value), partial + i, lanes);
                    });
                  }
                }
              });
  });
  sums.add_to(context, 0, a.sum.data<float>());
}

}  // namespace
}  // namespace onebit::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onebit::ops {

HWY_EXPORT(squared_norm);
HWY_EXPORT(absolute_sum);
HWY_EXPORT(all_finite);
ONEBIT_CPU_OP(column_sum, ColumnSum);

namespace cpu {

double squared_norm(Context& context, ConstView x) {
  return HWY_DYNAMIC_DISPATCH(squared_norm)(context, x);
}

double absolute_sum(Context& context, ConstView x) {
  return HWY_DYNAMIC_DISPATCH(absolute_sum)(context, x);
}

bool all_finite(Context& context, ConstView x) {
  return HWY_DYNAMIC_DISPATCH(all_finite)(context, x);
}

}  // namespace cpu
}  // namespace onebit::ops
#endif
