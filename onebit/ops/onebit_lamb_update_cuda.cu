#include "onebit/kernels/kernel_cuda.h"
#include "onebit/kernels/lamb_tensor_cuda.h"
#include "onebit/kernels/update_ranges_cuda.h"
#include "onebit/ops/onebit_lamb_update.h"

namespace onebit::ops::cuda {

using namespace kernels;
using namespace kernels::cuda;

namespace {

using Squares = SumsOf<double>;  // of values and u, or of residuals only

struct Parts {
  const LambPart* all;
  int64_t count;

  // The first part of `tensor` or of a later one.
  __device__ int64_t first_of(int64_t tensor) const {
    int64_t low = 0, high = count;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (all[middle].tensor < tensor) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
};

// One thread block per part.
__global__ void part_squares(const float* values, const float* momenta, const LambTensor* tensors,
                             Parts parts, float factor, Squares* squares) {
  const LambPart& part = parts.all[blockIdx.x];
  const int64_t at = int64_t{threadIdx.x} * kEight, count = part.end - part.begin - at;
  const auto decay = static_cast<float>(tensors[part.tensor].weight_decay);
  const Eight value = load_eight(values + part.begin + at, count);
  const Eight momentum = load_eight(momenta + part.owned + at, count);
  Squares sum{0, 0};
  for (int i = 0; i < kEight; ++i) {
    // Elements past the end are zeros and add nothing.
    const double direction = fmaf(decay, value.lane[i], factor * momentum.lane[i]);
    sum.first += double{value.lane[i]} * double{value.lane[i]};
    sum.second += direction * direction;
  }
  sum = block_sums_of(sum);
  if (threadIdx.x == 0) squares[blockIdx.x] = sum;
}

// One thread block per part.
__global__ void residual_squares(const float* residual, Parts parts, Squares* squares) {
  const LambPart& part = parts.all[blockIdx.x];
  const int64_t at = int64_t{threadIdx.x} * kEight;
  const Eight owed = load_eight(residual + part.owned + at, part.end - part.begin - at);
  Squares sum{0, 0};
  for (int i = 0; i < kEight; ++i) sum.first += double{owed.lane[i]} * double{owed.lane[i]};
  sum = block_sums_of(sum);
  if (threadIdx.x == 0) squares[blockIdx.x] = sum;
}

// `width` sums per tensor. One thread block per tensor; which parts a thread adds depends only on
// their number.
__global__ void tensor_squares(const Squares* squares, Parts parts, int width, double* sums) {
  const int64_t tensor = blockIdx.x, end = parts.first_of(tensor + 1);
  Squares sum{0, 0};
  for (int64_t part = parts.first_of(tensor) + threadIdx.x; part < end; part += kLambThreads) {
    sum.first += squares[part].first;
    sum.second += squares[part].second;
  }
  sum = block_sums_of(sum);
  if (threadIdx.x != 0) return;
  sums[width * tensor] = sum.first;
  if (width == 2) sums[2 * tensor + 1] = sum.second;
}

// The parts in device memory, and memory for the sums of each.
class DeviceParts {
 public:
  DeviceParts(CudaStream& cuda, std::span<const LambPart> parts)
      : count_(static_cast<int64_t>(parts.size())),
        parts_(cuda.scratch().take(static_cast<int64_t>(parts.size_bytes()))),
        squares_(cuda.scratch().take(count_ * static_cast<int64_t>(sizeof(Squares)))) {
    cuda.upload(parts_.data(), parts.data(), static_cast<int64_t>(parts.size_bytes()));
  }
  Parts parts() const { return {parts_.as<LambPart>(), count_}; }
  Squares* squares() const { return squares_.as<Squares>(); }

 private:
  int64_t count_;
  Scratch::Block parts_, squares_;
};

struct Step {
  float* value;
  const float* momentum;
  const uint8_t* still;
  const float* ratio;
  double learning_rate;
  float factor;
};

__global__ void step(Step a, ComputeCopy copy, LambTensors tensors) {
  const int index = tensors.of_block(blockIdx.x);
  const LambTensor& tensor = tensors.all[index];
  const int64_t at = tensors.begin(tensor, blockIdx.x), count = tensor.end - at;
  if (count <= 0) return;
  const auto decay = static_cast<float>(tensor.weight_decay);
  const auto rate = static_cast<float>(a.learning_rate * a.ratio[index]);
  Eight value = load_eight(a.value + at, count);
  const Eight m = load_eight(a.momentum + at, count);
  for (int i = 0; i < kEight && i < count; ++i) {
    const float moved =
        fmaf(-rate, fmaf(decay, value.lane[i], a.factor * m.lane[i]), value.lane[i]);
    const bool is_still = (a.still[(at + i) / 8] >> (at + i) % 8 & 1) != 0;
    value.lane[i] = is_still ? value.lane[i] : moved;
  }
  store_eight(value, a.value + at, count);
  copy.store(value, at, count);
}

}  // namespace

void onebit_lamb_squares(Context& context, const OnebitLambSquares& a) {
  if (a.tensors.empty()) return;
  CudaStream& cuda = CudaStream::of(context);
  const DeviceLambTensors tensors(cuda, a.tensors);
  const DeviceParts described(cuda, a.parts);
  const Parts parts = described.parts();
  if (parts.count > 0) {
    launch("part_squares", cuda, static_cast<unsigned>(parts.count), kLambThreads, part_squares,
           a.value.data<float>(), a.momentum.data<float>(), tensors.tensors().all, parts,
           static_cast<float>(a.momentum_factor), described.squares());
  }
  launch("onebit_lamb_squares", cuda, static_cast<unsigned>(a.tensors.size()), kLambThreads,
         tensor_squares, described.squares(), parts, 2, a.squares.data<double>());
}

void onebit_lamb_residual(Context& context, const OnebitLambResidual& a) {
  if (a.tensors.empty()) return;
  CudaStream& cuda = CudaStream::of(context);
  const DeviceParts described(cuda, a.parts);
  const Parts parts = described.parts();
  if (parts.count > 0) {
    launch("residual_squares", cuda, static_cast<unsigned>(parts.count), kLambThreads,
           residual_squares, a.residual.data<float>(), parts, described.squares());
  }
  launch("onebit_lamb_residual", cuda, static_cast<unsigned>(a.tensors.size()), kLambThreads,
         tensor_squares, described.squares(), parts, 1, a.squares.data<double>());
}

void onebit_lamb_step(Context& context, const OnebitLambStep& a) {
  if (a.tensors.empty()) return;
  CudaStream& cuda = CudaStream::of(context);
  const DeviceLambTensors tensors(cuda, a.tensors);
  const Step call{.value = a.value.data<float>(),
                  .momentum = a.momentum.data<float>(),
                  .still = a.still.data<uint8_t>(),
                  .ratio = a.ratio.data<float>(),
                  .learning_rate = a.learning_rate,
                  .factor = static_cast<float>(a.momentum_factor)};
  const auto grid = static_cast<unsigned>(a.tensors.back().end_block());
  launch("onebit_lamb_step", cuda, grid, kLambThreads, step, call, ComputeCopy(a.compute_value),
         tensors.tensors());
}

}  // namespace onebit::ops::cuda
