#include "onebit/math/kernels/update_ranges_cuda.h"
#include "onebit/math/updates/adam_update.h"

namespace onebit::updates::cuda {

using namespace kernels;
using namespace kernels::cuda;

namespace {

constexpr int kThreads = 256;

struct Flat {
  float *value, *momentum, *variance;
  const float* gradient;
};

// One thread per eight elements.
__global__ void update(Flat flat, ComputeCopy copy, int64_t elements, AdamFactors factors,
                       const UpdateRange* ranges, int range_count) {
  const int64_t at = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kEight;
  if (at >= elements) return;
  const int64_t count = elements - at;
  const RangeSettings range = settings_at(ranges, range_count, at);
  const float rate = factors.rate_of(range.rate);
  Eight value = load_eight(flat.value + at, count);
  Eight momentum = load_eight(flat.momentum + at, count);
  Eight variance = load_eight(flat.variance + at, count);
  const Eight gradient = load_eight(flat.gradient + at, count);
  for (int i = 0; i < kEight; ++i) {
    const AdamElement old{value.lane[i], momentum.lane[i], variance.lane[i]};
    const AdamElement fresh = adam_element(old, gradient.lane[i], range.decay, rate, factors);
    value.lane[i] = fresh.value;
    momentum.lane[i] = fresh.momentum;
    variance.lane[i] = fresh.variance;
  }
  store_eight(value, flat.value + at, count);
  store_eight(momentum, flat.momentum + at, count);
  store_eight(variance, flat.variance + at, count);
  copy.store(value, at, count);
}

}  // namespace

void adam_update(Context& context, const AdamUpdate& a) {
  const int64_t elements = a.value.elements();
  if (elements == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  const DeviceRanges ranges(cuda, a.ranges);
  const Flat flat{a.value.data<float>(), a.momentum.data<float>(), a.variance.data<float>(),
                  a.gradient.data<float>()};
  launch("adam_update", cuda, blocks_of(elements, kThreads * kEight), kThreads, update, flat,
         ComputeCopy(a.compute_value), elements, AdamFactors(a), ranges.data(), ranges.count());
}

}  // namespace onebit::updates::cuda
