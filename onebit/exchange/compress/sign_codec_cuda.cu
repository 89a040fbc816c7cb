// The sign codec on a CUDA device in one fused pass: a warp processes one block of the buffer, its
// 32 lanes are the 32 virtual lanes of sign_block_inl.h, and sums are computed in the same order,
// so that CUDA and CPU ranks send each other the same bits.
#include <cfloat>

#include "onebit/exchange/compress/sign_codec.h"
#include "onebit/math/kernels/kernel_cuda.h"

namespace onebit::compress::cuda {

using namespace kernels::cuda;

namespace {

constexpr int kWarpsPerBlock = 4;
constexpr int kBlockThreads = kWarp * kWarpsPerBlock;
constexpr int kGroups = static_cast<int>(kBlockElements) / kWarp;  // of 32 elements
constexpr int kSubBlockGroups = static_cast<int>(kSubBlockElements) / kWarp;
constexpr int kSubBlocksOfBlock = static_cast<int>(kSubBlocks);

// The addresses of the parts of a chunk. All, headers too, are aligned to kChunkAlignment only.
struct Wire {
  uint8_t *headers, *bits;

  Wire(const View& chunk, int64_t elements)
      : headers(chunk.data<uint8_t>()), bits(headers + signs_offset(elements)) {}

  // Loads the header at `offset` additional bytes.
  __device__ BlockHeader load_header(int64_t block, int64_t offset = 0) const {
    const auto* words = reinterpret_cast<const uint32_t*>(headers + offset) + kHeaderWords * block;
    return {static_cast<uint16_t>(words[0]), static_cast<uint16_t>(words[0] >> 16), words[1]};
  }
  __device__ void store_header(int64_t block, const BlockHeader& header) const {
    auto* words = reinterpret_cast<uint32_t*>(headers) + kHeaderWords * block;
    words[0] = uint32_t{header.base} | uint32_t{header.extra} << 16;
    words[1] = header.codes;
  }
};

__device__ uint16_t extra_of(float value) {
  return __bfloat16_as_ushort(__float2bfloat16_rn(value));
}

__device__ float extra_value(const BlockHeader& header) {
  return __bfloat162float(__ushort_as_bfloat16(header.extra));
}

__device__ float scale_of(const BlockHeader& header, int sub_block) {
  return base_value(header.base) * scale_factor(code_of(header, static_cast<uint32_t>(sub_block)));
}

__device__ bool bit_at(const uint8_t* bits, int64_t element) {
  return (bits[element / 8] >> (element % 8) & 1) != 0;
}

// The sum of the lanes in the order of Accumulator::sum(), computed in lane 0, then broadcast.
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
};

// The source of this rank's values. What a source has to load once for a sub-block is its part().
struct Given {
  const float* values;

  // The largest scale.
  __device__ static float most() { return FLT_MAX; }  // std::numeric_limits is for the host
  __device__ Given part(int64_t, int, int, int64_t) const { return *this; }
  __device__ float at(int, int64_t element) const { return values[element]; }
};

// The other source: the average of the signs of all ranks, in rank order, or the momentum computed
// from it, with its lead.
struct Averaged {
  Wire first;  // of rank 0. The one of rank r is stride_bytes * r further
  int64_t stride_bytes;
  int ranks;
  float share;      // 1 / ranks
  float* momentum;  // may be null
  float beta, weight, lead, limit;

  __device__ float most() const { return limit; }

  // The sums of a lane's elements of a sub-block, one a group.
  struct Part {
    const Averaged& source;
    float sum[kSubBlockGroups] = {};

    // Called once for every element that counts: the momentum moves.
    __device__ float at(int group, int64_t element) const {
      const float average = sum[group] * source.share;
      if (source.momentum == nullptr) return average;
      const float before = source.momentum[element];
      const float next = source.beta * before + source.weight * average;
      const float kept = fabsf(next) >= kMinLevel ? next : 0.0f;
      const float moved = fmaxf(-source.limit, fminf(kept, source.limit));
      source.momentum[element] = moved;
      return moved + source.lead * (moved - before);
    }
  };

  // The loop over ranks is not unrolled: in each of a block's 64 groups that made 600 KB of code.
  __device__ Part part(int64_t block, int sub_block, int lane, int64_t elements) const {
    Part part{*this};
    const int64_t first = block * kBlockElements + sub_block * kSubBlockElements + lane;
#pragma unroll 1
    for (int rank = 0; rank < ranks; ++rank) {
      const int64_t offset = rank * stride_bytes;
      const float scale = scale_of(this->first.load_header(block, offset), sub_block);
#pragma unroll
      for (int group = 0; group < kSubBlockGroups; ++group) {
        const int64_t element = first + group * kWarp;
        const bool positive = element < elements && bit_at(this->first.bits + offset, element);
        part.sum[group] =
            rank == 0 ? (positive ? scale : -scale) : part.sum[group] + (positive ? scale : -scale);
      }
    }
    return part;
  }
};

// Stores the 64 sign words of a block, two per lane. The bits of the last word that no element has
// are zero, and a chunk ends with a whole word.
__device__ void store_signs(const Sink& sink, int64_t first, int lane, const unsigned (&word)[2]) {
  for (int half = 0; half < 2; ++half) {
    const int64_t element = first + (int64_t{half} * kWarp + lane) * kWarp;
    if (element < sink.elements) {
      *reinterpret_cast<uint32_t*>(sink.wire.bits + element / 8) = word[half];
    }
  }
}

// The header of a block: lane j < kSubBlocks passes the mean absolute value of sub-block j, the
// other lanes 0. The largest level does not depend on the order.
__device__ BlockHeader header_of(float level, float extra, int lane) {
  float largest = level;
  for (int step = kWarp / 2; step >= 1; step /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(kAllLanes, largest, step));
  }
  const uint16_t base = base_of(largest);
  uint32_t code = 0;
#pragma unroll 1
  for (uint32_t k = 0; k < kScaleCodes; ++k) {
    code += level < base_value(base) * code_limit(k) ? 1 : 0;
  }
  const uint32_t codes = __reduce_or_sync(
      kAllLanes, lane < kSubBlocksOfBlock ? code_at(code, static_cast<uint32_t>(lane)) : 0);
  return {base, extra_of(extra), base == 0 ? kNothingSentAtAll : codes};
}

// Which elements of a block are neither still nor past its end. kWhole: the block has all its
// elements, and still bits come in aligned words, so that nothing is loaded conditionally.
template <bool kWhole>
class Counted {
 public:
  __device__ Counted(const Sink& sink, int64_t first, int lane)
      : sink_(sink), first_(first), lane_(lane) {
    if constexpr (kWhole) {
      if (sink.still == nullptr) return;
      const auto* words = reinterpret_cast<const uint32_t*>(sink.still) + first / kWarp;
      word_[0] = words[lane];
      word_[1] = words[lane + kWarp];
    }
  }
  // Whether the lane's element in a group counts. All lanes ask together.
  __device__ bool counts(int group) const {
    if constexpr (kWhole) {
      const unsigned word = __shfl_sync(kAllLanes, word_[group / kWarp], group % kWarp);
      return (word >> lane_ & 1u) == 0;
    }
    const int64_t element = first_ + group * kWarp + lane_;
    return element < sink_.elements && (sink_.still == nullptr || !bit_at(sink_.still, element));
  }

 private:
  const Sink& sink_;
  int64_t first_;
  int lane_;
  unsigned word_[2] = {0, 0};
};

// Sends sign(c) * scale for c = value + residual and keeps the difference. kWhole: as in Counted,
// and the source may be asked for elements that do not count.
template <bool kWhole, class Source>
__device__ void code_block(const Sink& sink, const Source& source, int64_t block, float extra,
                           int lane) {
  const int64_t first = block * kBlockElements;
  const Counted<kWhole> counted_elements(sink, first, lane);
  float compensated[kGroups], squares = 0, level = 0;
  uint64_t left_out = 0;  // still, or past the end: one bit per group
#pragma unroll
  for (int sub_block = 0; sub_block < kSubBlocksOfBlock; ++sub_block) {
    float sum = 0;
    unsigned counted = 0;
    const auto part = source.part(block, sub_block, lane, sink.elements);
#pragma unroll
    for (int i = 0; i < kSubBlockGroups; ++i) {
      const int group = sub_block * kSubBlockGroups + i;
      const int64_t element = first + group * kWarp + lane;
      const bool counts = counted_elements.counts(group);
      const bool loads = kWhole || counts;
      float value = loads ? part.at(i, element) : 0.0f;
      const float residual = loads ? sink.residual[element] : 0.0f;
      value = counts ? value : 0.0f;
      const float c = counts ? value + residual : 0.0f;
      compensated[group] = c;
      left_out |= uint64_t{!counts} << group;
      counted += counts ? 1 : 0;
      sum += fabsf(c);
      squares += value * value;
    }
    sum = lane_sum(sum);
    counted = __reduce_add_sync(kAllLanes, counted);
    if (lane == sub_block && counted > 0)
      level = fminf(sum / static_cast<float>(counted) * kSignGain, source.most());
  }
  squares = lane_sum(squares);
  const BlockHeader header = header_of(level, extra, lane);
  float residual_squares = 0;
  unsigned word[2] = {0, 0};
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
    const int64_t element = first + group * kWarp + lane;
    const float c = header.base == 0 ? 0.0f : compensated[group];
    const float scale = scale_of(header, group / kSubBlockGroups);
    const bool positive = c >= 0.0f;
    const float left = (left_out >> group & 1) != 0 ? 0.0f : c - (positive ? scale : -scale);
    if (kWhole || element < sink.elements) sink.residual[element] = left;
    residual_squares += left * left;
    const unsigned signs =
        __ballot_sync(kAllLanes, positive && (kWhole || element < sink.elements));
    if (group % kWarp == lane) word[group / kWarp] = signs;
  }
  residual_squares = lane_sum(residual_squares);
  store_signs(sink, first, lane, word);
  if (lane != 0) return;
  sink.wire.store_header(block, header);
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

__global__ void __launch_bounds__(kBlockThreads)
    encode_blocks(Sink sink, Given source, const float* extras) {
  const int64_t block = block_of_warp(sink.first_block, sink.block_count);
  if (block < 0) return;
  const int lane = static_cast<int>(threadIdx.x);
  const float extra = extras == nullptr ? 0.0f : extras[block];
  const bool has_words = reinterpret_cast<uintptr_t>(sink.still) % sizeof(uint32_t) == 0;
  if (has_words && (block + 1) * kBlockElements <= sink.elements) {
    code_block<true>(sink, source, block, extra, lane);
  } else {
    code_block<false>(sink, source, block, extra, lane);
  }
}

__global__ void __launch_bounds__(kBlockThreads, 4) average_blocks(Sink sink, Averaged source) {
  const int64_t block = block_of_warp(sink.first_block, sink.block_count);
  if (block < 0) return;
  const int lane = static_cast<int>(threadIdx.x);
  float extra = extra_value(source.first.load_header(block));
  for (int rank = 1; rank < source.ranks; ++rank) {
    extra += extra_value(source.first.load_header(block, rank * source.stride_bytes));
  }
  code_block<false>(sink, source, block, extra * source.share, lane);
}

struct Decoding {
  int64_t elements, first_block, block_count;
  Wire wire;
  const uint8_t* still;
  float *values, *extras;  // of the blocks, of the chunk. Either may be null
};

__global__ void __launch_bounds__(kBlockThreads) decode_blocks(Decoding a) {
  const int64_t block = block_of_warp(a.first_block, a.block_count);
  if (block < 0) return;
  const int lane = static_cast<int>(threadIdx.x);
  const BlockHeader header = a.wire.load_header(block);
  for (int group = 0; group < kGroups && a.values != nullptr; ++group) {
    const int64_t element = block * kBlockElements + group * kWarp + lane;
    if (element >= a.elements) break;
    const bool moves = a.still == nullptr || !bit_at(a.still, element);
    const float scale = scale_of(header, group / kSubBlockGroups);
    const float value = bit_at(a.wire.bits, element) ? scale : -scale;
    a.values[element - a.first_block * kBlockElements] = moves ? value : 0.0f;
  }
  if (lane == 0 && a.extras != nullptr) a.extras[block] = extra_value(header);
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
          .wire = Wire(args.chunk, elements),
          .squares = args.block_squares.template data<double>()};
}

View writable(const ConstView& view) {
  return {const_cast<void*>(view.raw()), view.dtype(), view.shape(), view.device()};
}

const dim3 kThreads(kWarp, kWarpsPerBlock);

}  // namespace

void encode(Context& context, const Encode& args) {
  const Sink sink = sink_of(args);
  if (sink.block_count == 0) return;
  const CudaStream& cuda = CudaStream::of(context);
  launch("encode_blocks", cuda, blocks_of(sink.block_count, kWarpsPerBlock), kThreads,
         encode_blocks, sink, Given{args.values.data<float>()}, args.extras.data<float>());
}

void average(Context& context, const Average& args) {
  const Sink sink = sink_of(args);
  if (sink.block_count == 0) return;
  const CudaStream& cuda = CudaStream::of(context);
  const int ranks = static_cast<int>(args.chunks.extent(0));
  const Averaged source{.first = Wire(writable(args.chunks), sink.elements),
                        .stride_bytes = args.chunk.elements(),
                        .ranks = ranks,
                        .share = 1.0f / static_cast<float>(ranks),
                        .momentum = args.momentum.data<float>(),
                        .beta = static_cast<float>(args.step.beta),
                        .weight = static_cast<float>(args.step.weight),
                        .lead = static_cast<float>(args.step.lead),
                        .limit = static_cast<float>(args.step.limit)};
  launch("average_blocks", cuda, blocks_of(sink.block_count, kWarpsPerBlock), kThreads,
         average_blocks, sink, source);
}

void decode(Context& context, const Decode& args) {
  const int64_t count = args.blocks.end - args.blocks.begin;
  if (count == 0) return;
  const CudaStream& cuda = CudaStream::of(context);
  const Decoding call{.elements = args.elements,
                      .first_block = args.blocks.begin,
                      .block_count = count,
                      .wire = Wire(writable(args.chunk), args.elements),
                      .still = args.still.data<uint8_t>(),
                      .values = args.values.data<float>(),
                      .extras = args.extras.data<float>()};
  launch("decode_blocks", cuda, blocks_of(count, kWarpsPerBlock), kThreads, decode_blocks, call);
}

}  // namespace onebit::compress::cuda
