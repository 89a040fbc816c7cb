// The processing of a bucket between its two collectives, which are in comm/bucket_pipeline.cc.
#include "onebit/exchange/compress/compressed_all_reduce.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "onebit/exchange/compress/sign_codec.h"
#include "onebit/ground/base/error.h"
#include "onebit/math/device/memory.h"

namespace onebit::compress {
namespace {

// Blocks coded between two polls of the network: about half a millisecond of work.
constexpr int64_t kBlocksPerPoll = 512;

View bytes_view(std::span<const std::byte> bytes, Device device) {
  return {const_cast<std::byte*>(bytes.data()),
          DType::kU8,
          {static_cast<int64_t>(bytes.size())},
          device};
}

View part_of(const View& flat, int64_t begin, int64_t elements) {
  return flat.empty() ? View() : flat.rows(begin, begin + elements);
}

ConstView part_of(const ConstView& flat, int64_t begin, int64_t elements) {
  return flat.empty() ? ConstView() : flat.rows(begin, begin + elements);
}

// A CUDA device gets all blocks at once: it computes while the host polls the network.
template <typename Work>
void in_pieces(const Context& context, int64_t elements, const Work& work) {
  const int64_t blocks = blocks_in(elements);
  const int64_t piece = context.device().is_cpu() ? kBlocksPerPoll : blocks;
  for (int64_t begin = 0; begin < blocks; begin += piece) {
    work(BlockRange{begin, std::min(begin + piece, blocks)});
  }
}

double norm_of(const Tensor& squares, int64_t column) {
  double sum = 0;
  for (int64_t block = 0; block < squares.shape()[0]; ++block) {
    sum += squares.data<double>()[2 * block + column];
  }
  return std::sqrt(sum);
}

int64_t bytes_on_the_wire(Range bucket, int world_size) {
  int64_t bytes = 0;
  for (int rank = 0; rank < world_size; ++rank) {
    bytes += chunk_bytes(comm::chunk_of(bucket, world_size, rank).elements());
  }
  return bytes;
}

}  // namespace

CompressedAllReduce::CompressedAllReduce(const comm::Communicator& communicator,
                                         const comm::Buckets& buckets,
                                         const CompressionOptions& options)
    : buckets_(buckets),
      world_size_(communicator.world_size()),
      rank_(communicator.rank()),
      options_(options) {
  const Device device = communicator.device();
  const int64_t owned = buckets.owned_elements(world_size_, rank_);
  int64_t owned_blocks = 0;
  for (int64_t bucket = 0; bucket < buckets.count(); ++bucket) {
    owned_offsets_.push_back(buckets.owned_offset(bucket, world_size_, rank_));
    owned_block_offsets_.push_back(owned_blocks);
    owned_blocks += blocks_in(comm::chunk_of(buckets.range(bucket), world_size_, rank_).elements());
  }
  if (!options.given_residual) {
    worker_residual_ = Tensor::zeros(device, DType::kF32, {buckets.elements()});
  }
  server_residual_ = Tensor::zeros(device, DType::kF32, {owned});
  owner_momentum_ = Tensor::zeros(device, DType::kF32, {options.owner_momentum ? owned : 0});
  worker_squares_ = Tensor::zeros(device, DType::kF64, {blocks_in(buckets.elements()), 2});
  server_squares_ = Tensor::zeros(device, DType::kF64, {owned_blocks, 2});
  worker_squares_on_host_ = Tensor::zeros(Device{}, DType::kF64, worker_squares_.shape());
  server_squares_on_host_ = Tensor::zeros(Device{}, DType::kF64, server_squares_.shape());
  coded_offsets_ = {0};
  for (int64_t bucket = 0; bucket < buckets.count(); ++bucket) {
    coded_offsets_.push_back(coded_offsets_.back() +
                             bytes_on_the_wire(buckets.range(bucket), world_size_));
  }
  coded_ = Buffer(device, coded_offsets_.back());
  coded_.fill_zero();
}

comm::BucketStations CompressedAllReduce::stations(CompressedFill fill) {
  using comm::BucketInFlight;
  return {
      .chunk_bytes = [](Range chunk) { return compress::chunk_bytes(chunk.elements()); },
      .fill_provides = comm::BucketStations::Provides::kGathered,
      .exchanges_alone = true,
      .fill =
          [this, fill = std::move(fill)](Context& context, BucketInFlight& in_flight) {
            const CompressedBucket data = fill(context, in_flight);
            ONEBIT_INVARIANT(data.values.elements() == in_flight.range.elements());
            data_[static_cast<size_t>(in_flight.slot)] = data;
            in_flight.gathered = coded(in_flight.bucket);
          },
      .pack = [this](Context& context, BucketInFlight& in_flight) { pack(context, in_flight); },
      .reduce = [this](Context& context, BucketInFlight& in_flight) { reduce(context, in_flight); },
      .deliver = {}};  // the results stay coded where they have arrived
}

std::span<std::byte> CompressedAllReduce::coded(int64_t bucket) const {
  const auto index = static_cast<size_t>(bucket);
  const int64_t begin = coded_offsets_[index], end = coded_offsets_[index + 1];
  return {coded_.data() + begin, static_cast<size_t>(end - begin)};
}

void CompressedAllReduce::pack(Context& context, comm::BucketInFlight& in_flight) {
  const CompressedBucket& data = data_[static_cast<size_t>(in_flight.slot)];
  const Range range = in_flight.range;
  size_t offset = 0;
  for (int rank = 0; rank < world_size_; ++rank) {
    const Range chunk = comm::chunk_of(range, world_size_, rank);
    const auto size_bytes = static_cast<size_t>(in_flight.chunk_bytes[static_cast<size_t>(rank)]);
    const int64_t place = chunk.begin - range.begin, elements = chunk.elements();
    const int64_t blocks = blocks_in(elements);
    if (elements == 0) continue;
    Encode args{
        .values = data.values.rows(place, place + elements),
        .residual = worker_residual_.view().rows(chunk.begin, chunk.end),
        .still = part_of(data.still, place / 8, sign_bytes(elements)),
        .extras = part_of(data.extras, place / kBlockElements, blocks),
        .chunk = bytes_view(in_flight.send.subspan(offset, size_bytes), context.device()),
        .block_squares = part_of(worker_squares_.view(), chunk.begin / kBlockElements, blocks),
        .blocks = {}};
    in_pieces(context, elements, [&](BlockRange blocks_now) {
      args.blocks = blocks_now;
      encode(context, args);
      in_flight.poll();
    });
    offset += size_bytes;
  }
}

void CompressedAllReduce::reduce(Context& context, comm::BucketInFlight& in_flight) {
  const CompressedBucket& data = data_[static_cast<size_t>(in_flight.slot)];
  const int64_t elements = in_flight.chunk.elements(), blocks = blocks_in(elements);
  if (elements == 0) return;
  const int64_t place = in_flight.chunk.begin - in_flight.range.begin;
  const auto bucket = static_cast<size_t>(in_flight.bucket);
  Average args{
      .chunks = bytes_view(in_flight.received, context.device())
                    .reshaped({world_size_, static_cast<int64_t>(in_flight.result.size())}),
      .residual = part_of(server_residual_.view(), owned_offsets_[bucket], elements),
      .still = part_of(data.still, place / 8, sign_bytes(elements)),
      .chunk = bytes_view(in_flight.result, context.device()),
      .block_squares = part_of(server_squares_.view(), owned_block_offsets_[bucket], blocks),
      .momentum = options_.owner_momentum
                      ? part_of(owner_momentum_.view(), owned_offsets_[bucket], elements)
                      : View(),
      .step = data.momentum,
      .blocks = {}};
  in_pieces(context, elements, [&](BlockRange blocks_now) {
    args.blocks = blocks_now;
    average(context, args);
    in_flight.poll();
  });
}

template <typename Work>
void CompressedAllReduce::for_chunks(int64_t bucket, const Work& work) const {
  const Range range = buckets_.range(bucket);
  const std::span<std::byte> bytes = coded(bucket);
  size_t offset = 0;
  for (int rank = 0; rank < world_size_; ++rank) {
    const Range chunk = comm::chunk_of(range, world_size_, rank);
    const auto size_bytes = static_cast<size_t>(compress::chunk_bytes(chunk.elements()));
    if (chunk.elements() > 0) {
      work(Range{chunk.begin - range.begin, chunk.end - range.begin},
           bytes.subspan(offset, size_bytes));
    }
    offset += size_bytes;
  }
}

void CompressedAllReduce::decode(Context& context, int64_t bucket, BlockRange blocks,
                                 ConstView still, View values) {
  for_chunks(bucket, [&](Range chunk, std::span<std::byte> bytes) {
    const int64_t elements = chunk.elements(), place = chunk.begin, first = place / kBlockElements;
    const BlockRange inside{std::max(blocks.begin - first, int64_t{0}),
                            std::min(blocks.end - first, blocks_in(elements))};
    if (inside.begin >= inside.end) return;
    const Range now = elements_of(inside, elements);
    const int64_t shift = place - blocks.begin * kBlockElements;
    compress::decode(context, {.chunk = bytes_view(bytes, context.device()),
                               .elements = elements,
                               .still = part_of(still, place / 8, sign_bytes(elements)),
                               .values = values.rows(now.begin + shift, now.end + shift),
                               .extras = {},
                               .blocks = inside});
  });
}

void CompressedAllReduce::decode_extras(Context& context, View extras) {
  for (int64_t bucket = 0; bucket < buckets_.count(); ++bucket) {
    const int64_t begin = buckets_.range(bucket).begin;
    for_chunks(bucket, [&](Range chunk, std::span<std::byte> bytes) {
      const int64_t elements = chunk.elements(), blocks = blocks_in(elements);
      compress::decode(context,
                       {.chunk = bytes_view(bytes, context.device()),
                        .elements = elements,
                        .still = {},
                        .values = {},
                        .extras = part_of(extras, (begin + chunk.begin) / kBlockElements, blocks),
                        .blocks = {0, blocks}});
    });
  }
}

int64_t CompressedAllReduce::coded_bytes(const comm::Buckets& buckets, int world_size) {
  int64_t bytes = 0;
  for (int64_t bucket = 0; bucket < buckets.count(); ++bucket) {
    bytes += bytes_on_the_wire(buckets.range(bucket), world_size);
  }
  return bytes;
}

std::vector<NamedView> CompressedAllReduce::state() {
  return {{"worker_residual", worker_residual()}, {"server_residual", server_residual_.view()}};
}

void CompressedAllReduce::clear_residuals() {
  for (const NamedView& part : state()) {
    if (part.view.empty()) continue;
    memory::fill_zero(part.view.device(), part.view.raw(), part.view.size_bytes());
  }
}

ResidualNorms CompressedAllReduce::norms() {
  copy(worker_squares_on_host_.view(), worker_squares_.view());
  copy(server_squares_on_host_.view(), server_squares_.view());
  return {.values = norm_of(worker_squares_on_host_, 0),
          .worker_residual = norm_of(worker_squares_on_host_, 1),
          .average = norm_of(server_squares_on_host_, 0),
          .server_residual = norm_of(server_squares_on_host_, 1)};
}

comm::Buckets sized_buckets(int64_t elements, int world_size, int64_t least_bytes) {
  if (world_size == 1) return {elements, least_bytes};
  const int64_t block_bytes = chunk_bytes(kBlockElements);
  const int64_t wanted_blocks = (kMessageBytes + block_bytes - 1) / block_bytes * world_size;
  const int64_t most_blocks = blocks_in(elements) / kMinBuckets;
  const int64_t value_bytes = kBlockElements * static_cast<int64_t>(sizeof(float));
  return {elements, std::max(least_bytes, std::min(wanted_blocks, most_blocks) * value_bytes)};
}

comm::Buckets two_level_buckets(int64_t elements, int nodes, int ranks_per_node,
                                int64_t least_bytes) {
  constexpr int64_t kBlockBytes = kBlockElements * static_cast<int64_t>(sizeof(float));
  const int64_t blocks = blocks_in(elements), ranks = ranks_per_node;
  require(blocks >= ranks,
          "{} parameters are {} blocks, which cannot be divided among the {} ranks of a node: use "
          "one level, or fewer ranks per node",
          elements, blocks, ranks);
  const int64_t share = std::min(elements, (blocks + ranks - 1) / ranks * kBlockElements);
  const comm::Buckets parts =
      sized_buckets(share, nodes, std::max(least_bytes / ranks, kBlockBytes));
  int64_t part_blocks = parts.bucket_bytes() / kBlockBytes;
  // The last bucket has the remainder, which is divided as well.
  const auto leaves_some_without = [&] {
    const int64_t rest = blocks % (ranks * part_blocks);
    return rest != 0 && rest < ranks;
  };
  while (leaves_some_without()) ++part_blocks;
  return {elements, ranks * part_blocks * kBlockBytes};
}

int64_t message_bytes(const comm::Buckets& buckets, int world_size) {
  const Range whole{0, buckets.max_elements()};
  return chunk_bytes(comm::chunk_of(whole, world_size, 0).elements());
}

}  // namespace onebit::compress
