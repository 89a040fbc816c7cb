#include "onebit/math/kernels/kernel_cuda.h"
#include "onebit/math/kernels/update_ranges_cuda.h"
#include "onebit/math/updates/onebit_lamb_update.h"

namespace onebit::updates::cuda {

using namespace kernels;
using namespace kernels::cuda;

namespace {

struct PartSums {
  double of[kLambSums];
};

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

struct Squares {
  const float *values, *momenta, *residuals;  // residuals: null if nothing is coded
  float* mean_residuals;
  const LambTensor* tensors;
  float factor, unsent_factor, share, kept, added;
};

// The part's residuals enter their running mean. Returns what turns the square of `direction` into
// that without signs.
__device__ double add_unsent(const Squares& a, const LambPart& part, const Eight& direction,
                             int64_t at, int64_t count) {
  const Eight residual = load_eight(a.residuals + part.in_share + at, count);
  Eight mean = load_eight(a.mean_residuals + part.owned + at, count);
  double sum = 0;
  for (int i = 0; i < kEight; ++i) {
    const float unsent = a.unsent_factor * (residual.lane[i] - mean.lane[i]);
    sum += double{unsent} * double{fmaf(a.share, unsent, 2 * direction.lane[i])};
    mean.lane[i] = fmaf(a.kept, mean.lane[i], a.added * residual.lane[i]);
  }
  store_eight(mean, a.mean_residuals + part.owned + at, count);
  return sum;
}

// One thread block per part.
__global__ void part_squares(Squares a, Parts parts, PartSums* sums) {
  const LambPart& part = parts.all[blockIdx.x];
  const int64_t at = int64_t{threadIdx.x} * kEight, count = part.end - part.begin - at;
  const auto decay = static_cast<float>(a.tensors[part.tensor].weight_decay);
  const Eight value = load_eight(a.values + part.begin + at, count);
  Eight direction = load_eight(a.momenta + part.owned + at, count);
  SumsOf<double> squares{0, 0};
  for (int i = 0; i < kEight; ++i) {
    // Elements past the end are zeros and add nothing.
    direction.lane[i] = fmaf(decay, value.lane[i], a.factor * direction.lane[i]);
    squares.first += double{value.lane[i]} * double{value.lane[i]};
    squares.second += double{direction.lane[i]} * double{direction.lane[i]};
  }
  double difference = 0;
  if (a.residuals != nullptr) difference = add_unsent(a, part, direction, at, count);
  squares = block_sums_of(squares);
  difference = block_sums_of(SumsOf<double>{difference, 0}).first;
  if (threadIdx.x == 0) sums[blockIdx.x] = {{squares.first, squares.second, difference}};
}

// One thread block per tensor. Which parts a thread adds depends only on their number.
__global__ void tensor_squares(const PartSums* part_sums, Parts parts, double* sums) {
  const int64_t tensor = blockIdx.x, end = parts.first_of(tensor + 1);
  SumsOf<double> squares{0, 0}, difference{0, 0};
  for (int64_t part = parts.first_of(tensor) + threadIdx.x; part < end; part += kLambThreads) {
    squares.first += part_sums[part].of[0];
    squares.second += part_sums[part].of[1];
    difference.first += part_sums[part].of[2];
  }
  squares = block_sums_of(squares);
  difference = block_sums_of(difference);
  if (threadIdx.x != 0) return;
  double* of_tensor = sums + kLambSums * tensor;
  of_tensor[0] = squares.first;
  of_tensor[1] = squares.second;
  of_tensor[2] = difference.first;
}

// The parts in device memory, and memory for the sums of each.
class DeviceParts {
 public:
  DeviceParts(CudaStream& cuda, const OnebitLambSquares& a)
      : count_(static_cast<int64_t>(a.parts.size())),
        given_(static_cast<const LambPart*>(a.parts_on_device.raw())),
        size_bytes_(given_ != nullptr ? 0 : static_cast<int64_t>(a.parts.size_bytes())),
        uploaded_(cuda.scratch().take(size_bytes_)),
        sums_(cuda.scratch().take(count_ * static_cast<int64_t>(sizeof(PartSums)))) {
    if (size_bytes_ > 0) cuda.upload(uploaded_.data(), a.parts.data(), size_bytes_);
  }
  Parts parts() const { return {given_ != nullptr ? given_ : uploaded_.as<LambPart>(), count_}; }
  PartSums* sums() const { return sums_.as<PartSums>(); }

 private:
  int64_t count_;
  const LambPart* given_;
  int64_t size_bytes_;  // of what is uploaded
  Scratch::Block uploaded_, sums_;
};

struct Step {
  float* value;
  const float* momentum;
  const uint8_t* still;
  const float* ratio;
  double learning_rate;
  float factor;
};

// One thread block per block of one tensor. Still entries keep their values.
__global__ void step(Step a, ComputeCopy copy, LambTensors tensors) {
  const int index = tensors.of_block(blockIdx.x);
  const LambTensor& tensor = tensors.all[index];
  const int64_t at = tensors.begin(tensor, blockIdx.x), count = tensor.end - at;
  if (count <= 0) return;
  const auto decay = static_cast<float>(tensor.weight_decay);
  const auto rate = static_cast<float>(a.learning_rate * tensor.rate * a.ratio[index]);
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
  const DeviceParts described(cuda, a);
  const Parts parts = described.parts();
  const bool coded = !a.residual.empty();
  const Squares call{.values = a.value.data<float>(),
                     .momenta = a.momentum.data<float>(),
                     .residuals = coded ? a.residual.data<float>() : nullptr,
                     .mean_residuals = coded ? a.mean_residual.data<float>() : nullptr,
                     .tensors = tensors.tensors().all,
                     .factor = static_cast<float>(a.momentum_factor),
                     .unsent_factor = static_cast<float>((1 - a.beta1) * a.momentum_factor),
                     .share = static_cast<float>(1.0 / a.sources),
                     .kept = static_cast<float>(a.beta1),
                     .added = static_cast<float>(1 - a.beta1)};
  if (parts.count > 0) {
    launch("part_squares", cuda, static_cast<unsigned>(parts.count), kLambThreads, part_squares,
           call, parts, described.sums());
  }
  launch("onebit_lamb_squares", cuda, static_cast<unsigned>(a.tensors.size()), kLambThreads,
         tensor_squares, described.sums(), parts, a.sums.data<double>());
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

}  // namespace onebit::updates::cuda
