// The sign codec on a CUDA device, one fused pass: a warp does a block of the buffer, its 32 lanes
// are the 32 virtual lanes of sign_block_inl.h, and sums are made in the same order, so that CUDA
// and CPU ranks send each other the same bits.
#include <cuda_bf16.h>

#include <cfloat>

#include "onebit/compress/sign_codec_backend.h"
#include "onebit/device/cuda_check.h"
#include "onebit/device/cuda_stream.h"

namespace onebit::compress {
namespace {

constexpr int kWarp = 32, kWarpsPerBlock = 4;
constexpr int kGroups = static_cast<int>(kBlockElements) / kWarp;  // of 32 elements
constexpr unsigned kAllLanes = 0xFFFFFFFFu;

// Where the parts of a chunk lie; `bits` is aligned to two bytes.
struct Wire {
  uint8_t *scales, *extras, *bits;
  ExtraType extra;

  Wire(const View& chunk, int64_t elements, ExtraType type)
      : scales(chunk.data<uint8_t>()),
        extras(scales + 4 * blocks_in(elements)),
        bits(extras + (type == ExtraType::kNone   ? 0
                       : type == ExtraType::kBF16 ? 2
                                                  : 4) *
                          blocks_in(elements)),
        extra(type) {}

  __device__ float* scale(int64_t block, int64_t offset = 0) const {
    return reinterpret_cast<float*>(scales + offset) + block;
  }
  __device__ void store_extra(int64_t block, float value) const {
    if (extra == ExtraType::kBF16) {
      reinterpret_cast<__nv_bfloat16*>(extras)[block] = __float2bfloat16_rn(value);
    } else if (extra == ExtraType::kF32) {
      memcpy(extras + 4 * block, &value, sizeof value);
    }
  }
  __device__ float load_extra(int64_t block, int64_t offset = 0) const {
    if (extra == ExtraType::kBF16) {
      return __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(extras + offset)[block]);
    }
    float value;
    memcpy(&value, extras + offset + 4 * block, sizeof value);
    return value;
  }
};

__device__ bool bit_at(const uint8_t* bits, int64_t element) {
  return (bits[element / 8] >> (element % 8) & 1) != 0;
}

// The sum of the lanes in the order of Accumulator::sum(); right in lane 0 alone, then told to all.
__device__ float lane_sum(float value) {
  for (int half = kWarp / 2; half >= 1; half /= 2) {
    value += __shfl_down_sync(kAllLanes, value, half);
  }
  return __shfl_sync(kAllLanes, value, 0);
}

struct Sink {
  int64_t elements, first_block, block_count;
  float* residual;
  const uint8_t* still;  // may be null
  Wire wire;
  double* squares;  // [blocks, 2], may be null
  ScaleKind scale;
};

// Values as this rank has them.
struct Given {
  const float* values;
  __device__ float at(int64_t, int64_t element) const { return values[element]; }
};

// Or the average of the signs of all ranks, in rank order.
struct Averaged {
  Wire first;  // of rank 0; of rank r stride_bytes * r further
  int64_t stride_bytes;
  int ranks;
  float share;  // 1 / ranks

  __device__ float signed_scale(int rank, int64_t block, int64_t element) const {
    const int64_t offset = rank * stride_bytes;
    const float scale = *first.scale(block, offset);
    return bit_at(first.bits + offset, element) ? scale : -scale;
  }
  __device__ float at(int64_t block, int64_t element) const {
    float sum = signed_scale(0, block, element);
    for (int rank = 1; rank < ranks; ++rank) sum += signed_scale(rank, block, element);
    return sum * share;
  }
};

// The 64 sign words of a block, two in every lane.
__device__ void store_signs(const Sink& sink, int64_t first, int lane, const unsigned (&word)[2]) {
  for (int half = 0; half < 2; ++half) {
    const int64_t element = first + (int64_t{half} * kWarp + lane) * kWarp;
    auto* to = reinterpret_cast<uint16_t*>(sink.wire.bits + element / 8);
    if (element + kWarp <= sink.elements) {
      to[0] = static_cast<uint16_t>(word[half]);
      to[1] = static_cast<uint16_t>(word[half] >> 16);
    } else {
      for (int byte = 0; element + byte * 8 < sink.elements; ++byte) {
        sink.wire.bits[element / 8 + byte] = static_cast<uint8_t>(word[half] >> (8 * byte));
      }
    }
  }
}

// c = value + residual; sign(c) * scale goes out, c minus that stays.
template <class Source>
__device__ void code_block(const Sink& sink, const Source& source, int64_t block, int lane) {
  const int64_t first = block * kBlockElements;
  const bool by_size = sink.scale == ScaleKind::kMeanAbsolute;
  float compensated[kGroups], level = 0, squares = 0;
  uint64_t left_out = 0;  // still, or past the end: a bit a group
  int counted = 0;
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
    const int64_t element = first + group * kWarp + lane;
    const bool counts =
        element < sink.elements && (sink.still == nullptr || !bit_at(sink.still, element));
    const float value = counts ? source.at(block, element) : 0.0f;
    const float c = counts ? value + sink.residual[element] : 0.0f;
    compensated[group] = c;
    left_out |= uint64_t{!counts} << group;
    counted += counts ? 1 : 0;
    level += by_size ? fabsf(c) : c * c;
    squares += value * value;
  }
  const float total = fminf(lane_sum(level), FLT_MAX);  // as in sign_block_inl.h
  squares = lane_sum(squares);
  counted = static_cast<int>(__reduce_add_sync(kAllLanes, static_cast<unsigned>(counted)));
  float scale = counted > 0 ? total / static_cast<float>(counted) : 0.0f;
  if (!by_size) scale = sqrtf(scale);
  float residual_squares = 0;
  unsigned word[2] = {0, 0};
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
    const int64_t element = first + group * kWarp + lane;
    const float c = compensated[group];
    const bool positive = c >= 0.0f;
    const float left = (left_out >> group & 1) != 0 ? 0.0f : c - (positive ? scale : -scale);
    if (element < sink.elements) sink.residual[element] = left;
    residual_squares += left * left;
    const unsigned signs = __ballot_sync(kAllLanes, positive && element < sink.elements);
    if (group % kWarp == lane) word[group / kWarp] = signs;
  }
  residual_squares = lane_sum(residual_squares);
  store_signs(sink, first, lane, word);
  if (lane != 0) return;
  *sink.wire.scale(block) = scale;
  if (sink.squares != nullptr) {
    sink.squares[2 * block] = double{squares};
    sink.squares[2 * block + 1] = double{residual_squares};
  }
}

// The block of this warp, or -1.
__device__ int64_t block_of_warp(int64_t first, int64_t count) {
  const int64_t index = int64_t{blockIdx.x} * kWarpsPerBlock + threadIdx.y;
  return index < count ? first + index : -1;
}

__global__ void encode_blocks(Sink sink, Given source, const float* extras) {
  const int64_t block = block_of_warp(sink.first_block, sink.block_count);
  if (block < 0) return;
  const int lane = static_cast<int>(threadIdx.x);
  code_block(sink, source, block, lane);
  if (lane == 0 && extras != nullptr) sink.wire.store_extra(block, extras[block]);
}

__global__ void average_blocks(Sink sink, Averaged source) {
  const int64_t block = block_of_warp(sink.first_block, sink.block_count);
  if (block < 0) return;
  const int lane = static_cast<int>(threadIdx.x);
  code_block(sink, source, block, lane);
  if (lane != 0 || sink.wire.extra == ExtraType::kNone) return;
  float sum = source.first.load_extra(block);
  for (int rank = 1; rank < source.ranks; ++rank) {
    sum += source.first.load_extra(block, rank * source.stride_bytes);
  }
  sink.wire.store_extra(block, sum * source.share);
}

struct Decoding {
  int64_t elements, first_block, block_count;
  Wire wire;
  const uint8_t* still;
  float *values, *extras;  // extras may be null
};

__global__ void decode_blocks(Decoding a) {
  const int64_t block = block_of_warp(a.first_block, a.block_count);
  if (block < 0) return;
  const int lane = static_cast<int>(threadIdx.x);
  const float scale = *a.wire.scale(block);
  for (int group = 0; group < kGroups; ++group) {
    const int64_t element = block * kBlockElements + group * kWarp + lane;
    if (element >= a.elements) break;
    const bool moves = a.still == nullptr || !bit_at(a.still, element);
    const float value = bit_at(a.wire.bits, element) ? scale : -scale;
    a.values[element] = moves ? value : 0.0f;
  }
  if (lane == 0 && a.extras != nullptr) a.extras[block] = a.wire.load_extra(block);
}

// `args` is Encode or Average.
template <class Args>
Sink sink_of(const Args& args) {
  const int64_t elements = args.residual.elements();
  return {.elements = elements,
          .first_block = args.blocks.begin,
          .block_count = args.blocks.end - args.blocks.begin,
          .residual = args.residual.template data<float>(),
          .still = args.still.template data<uint8_t>(),
          .wire = Wire(args.chunk, elements, args.extra),
          .squares = args.block_squares.template data<double>(),
          .scale = args.scale};
}

unsigned grid_of(int64_t blocks) {
  return static_cast<unsigned>((blocks + kWarpsPerBlock - 1) / kWarpsPerBlock);
}

View writable(const ConstView& view) {
  return {const_cast<void*>(view.raw()), view.dtype(), view.shape(), view.device()};
}

const dim3 kThreads(kWarp, kWarpsPerBlock);

}  // namespace

void encode_cuda(Context& context, const Encode& args) {
  const Sink sink = sink_of(args);
  if (sink.block_count == 0) return;
  const CudaStream& door = CudaStream::of(context);
  encode_blocks<<<grid_of(sink.block_count), kThreads, 0, door.stream()>>>(
      sink, Given{args.values.data<float>()}, args.extras.data<float>());
  check_cuda(cudaGetLastError(), "encode_blocks");
}

void average_cuda(Context& context, const Average& args) {
  const Sink sink = sink_of(args);
  if (sink.block_count == 0) return;
  const CudaStream& door = CudaStream::of(context);
  const int ranks = static_cast<int>(args.chunks.extent(0));
  const Averaged source{.first = Wire(writable(args.chunks), sink.elements, args.extra),
                        .stride_bytes = args.chunk.elements(),
                        .ranks = ranks,
                        .share = 1.0f / static_cast<float>(ranks)};
  average_blocks<<<grid_of(sink.block_count), kThreads, 0, door.stream()>>>(sink, source);
  check_cuda(cudaGetLastError(), "average_blocks");
}

void decode_cuda(Context& context, const Decode& args) {
  const int64_t count = args.blocks.end - args.blocks.begin;
  if (count == 0) return;
  const CudaStream& door = CudaStream::of(context);
  const int64_t elements = args.values.elements();
  const Decoding call{.elements = elements,
                      .first_block = args.blocks.begin,
                      .block_count = count,
                      .wire = Wire(writable(args.chunk), elements, args.extra),
                      .still = args.still.data<uint8_t>(),
                      .values = args.values.data<float>(),
                      .extras = args.extras.data<float>()};
  decode_blocks<<<grid_of(count), kThreads, 0, door.stream()>>>(call);
  check_cuda(cudaGetLastError(), "decode_blocks");
}

}  // namespace onebit::compress
