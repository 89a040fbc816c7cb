#include "onebit/math/kernels/kernel_cuda.h"
#include "onebit/math/kernels/update_ranges_cuda.h"
#include "onebit/math/updates/lamb_update.h"

namespace onebit::updates::cuda {

using namespace kernels;
using namespace kernels::cuda;

namespace {

using Squares = SumsOf<double>;  // of values and of u

struct Flat {
  float *value, *momentum, *variance;
  const float* gradient;
};

// The first pass: moments, and the squared norms of a block of one tensor.
__global__ void update_moments(Flat flat, LambFactors factors, LambTensors tensors,
                               Squares* squares) {
  const LambTensor& tensor = tensors.all[tensors.of_block(blockIdx.x)];
  const int64_t at = tensors.begin(tensor, blockIdx.x), count = tensor.end - at;
  const auto decay = static_cast<float>(tensor.weight_decay);
  const Eight value = load_eight(flat.value + at, count);
  const Eight gradient = load_eight(flat.gradient + at, count);
  Eight momentum = load_eight(flat.momentum + at, count);
  Eight variance = load_eight(flat.variance + at, count);
  Squares sum{0, 0};
  for (int i = 0; i < kEight; ++i) {
    const LambMoments moments =
        lamb_moments({momentum.lane[i], variance.lane[i]}, gradient.lane[i], factors);
    momentum.lane[i] = moments.momentum;
    variance.lane[i] = moments.variance;
    // Elements past the end are zeros and do not contribute.
    const double direction = lamb_direction(value.lane[i], moments, decay, factors);
    sum.first += double{value.lane[i]} * double{value.lane[i]};
    sum.second += direction * direction;
  }
  store_eight(momentum, flat.momentum + at, count);
  store_eight(variance, flat.variance + at, count);
  sum = block_sums_of(sum);
  if (threadIdx.x == 0) squares[blockIdx.x] = sum;
}

// One thread block per tensor. Which blocks a thread adds depends only on their number.
__global__ void find_ratios(const Squares* squares, int64_t blocks, LambTensors tensors,
                            double min_ratio, double max_ratio, float* ratios) {
  const int tensor = static_cast<int>(blockIdx.x);
  const int64_t end = tensors.end_block(tensor, blocks);
  Squares sum{0, 0};
  for (int64_t block = tensors.all[tensor].first_block + threadIdx.x; block < end;
       block += kLambThreads) {
    sum.first += squares[block].first;
    sum.second += squares[block].second;
  }
  sum = block_sums_of(sum);
  if (threadIdx.x != 0) return;
  ratios[tensor] = lamb_ratio(sum.first, sum.second, min_ratio, max_ratio);
}

// The second pass: the step of a block of one tensor, with the ratio of the tensor's norms.
__global__ void move_values(Flat flat, ComputeCopy copy, LambFactors factors, LambTensors tensors,
                            const float* ratios, double learning_rate) {
  const int index = tensors.of_block(blockIdx.x);
  const LambTensor& tensor = tensors.all[index];
  const int64_t at = tensors.begin(tensor, blockIdx.x), count = tensor.end - at;
  const auto decay = static_cast<float>(tensor.weight_decay);
  const auto rate = static_cast<float>(learning_rate * tensor.rate * ratios[index]);
  Eight value = load_eight(flat.value + at, count);
  const Eight momentum = load_eight(flat.momentum + at, count);
  const Eight variance = load_eight(flat.variance + at, count);
  for (int i = 0; i < kEight; ++i) {
    const LambMoments moments{momentum.lane[i], variance.lane[i]};
    const float direction = lamb_direction(value.lane[i], moments, decay, factors);
    value.lane[i] = fmaf(-rate, direction, value.lane[i]);
  }
  store_eight(value, flat.value + at, count);
  copy.store(value, at, count);
}

}  // namespace

void lamb_update(Context& context, const LambUpdate& a) {
  if (a.tensors.empty()) return;
  CudaStream& cuda = CudaStream::of(context);
  const DeviceLambTensors described(cuda, a.tensors);
  const LambTensors tensors = described.tensors();
  const int64_t blocks = a.tensors.back().end_block();
  const auto memory = cuda.scratch().take(blocks * static_cast<int64_t>(sizeof(Squares)));
  auto* squares = memory.as<Squares>();
  const Flat flat{a.value.data<float>(), a.momentum.data<float>(), a.variance.data<float>(),
                  a.gradient.data<float>()};
  const LambFactors factors(a);
  auto* ratios = a.ratio.data<float>();
  const auto grid = static_cast<unsigned>(blocks);
  launch("update_moments", cuda, grid, kLambThreads, update_moments, flat, factors, tensors,
         squares);
  launch("find_ratios", cuda, static_cast<unsigned>(tensors.count), kLambThreads, find_ratios,
         squares, blocks, tensors, a.min_ratio, a.max_ratio, ratios);
  launch("lamb_update", cuda, grid, kLambThreads, move_values, flat, ComputeCopy(a.compute_value),
         factors, tensors, ratios, a.learning_rate);
}

}  // namespace onebit::updates::cuda
