#include "onebit/exchange/optim/state_layout.h"

#include <algorithm>
#include <string>
#include <utility>

#include "onebit/exchange/comm/bucket.h"
#include "onebit/exchange/comm/collectives.h"
#include "onebit/exchange/compress/compressed_all_reduce.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"

namespace onebit::optim {

namespace {

int64_t in_extent(Extent extent, const StateDivision& division) {
  const compress::Ownership& ownership = division.ownership;
  const int64_t whole = ownership.buckets.elements();
  const comm::Buckets share = ownership.share_buckets(division.rank);
  switch (extent) {
    case Extent::kWhole:
      return whole;
    case Extent::kShare:
      return share.elements();
    case Extent::kOwned:
      return ownership.owned_elements(division.rank);
    case Extent::kShareBlocks:
      return comm::blocks_in(share.elements());
    case Extent::kBlockGroups:
      return groups_of(comm::blocks_in(whole));
    case Extent::kBucket:
      return share.max_elements();
    case Extent::kBucketBlocks:
      return comm::blocks_in(share.max_elements());
    case Extent::kCoded:
      return compress::CompressedAllReduce::coded_bytes(share, ownership.sources());
    case Extent::kNumber:
      return 1;
  }
  ONEBIT_INVARIANT(false);
}

// Summed over the ranks: the shares of a source are the flat buffer, and so is what all own.
int64_t saved_in_extent(Extent extent, const StateDivision& division) {
  const compress::Ownership& ownership = division.ownership;
  const int64_t whole = ownership.buckets.elements();
  switch (extent) {
    case Extent::kShare:
      return ownership.sources() * whole;
    case Extent::kShareBlocks:
      return ownership.sources() * comm::blocks_in(whole);
    case Extent::kOwned:
      return whole;
    default:
      return in_extent(extent, division);
  }
}

bool exists_in(const StateBuffer& buffer, Phase phase) {
  const bool compressed = phase == Phase::kCompressed;
  return buffer.exists == Exists::kAlways || (buffer.exists == Exists::kAfterFreeze) == compressed;
}

bool is_part(const StateBuffer& buffer) {
  return buffer.kept != Kept::kScratch && !buffer.instead;
}

bool is_saved_in(const StateBuffer& buffer, Phase phase) {
  return is_part(buffer) && exists_in(buffer, phase) &&
         (buffer.exists != Exists::kAlways || phase == Phase::kCompressed);
}

}  // namespace

int64_t StateSizes::memory_bytes(Phase phase) const {
  int64_t bytes = 0;
  for (const StateBuffer& buffer : layout) {
    if (buffer.on_host || buffer.instead || !exists_in(buffer, phase)) continue;
    bytes += in_extent(buffer.extent, division) * buffer.numbers * size_bytes_of(buffer.type);
  }
  return bytes;
}

int64_t StateSizes::saved_bytes(Phase phase) const {
  int64_t bytes = 0;
  for (const StateBuffer& buffer : layout) {
    if (!is_saved_in(buffer, phase)) continue;
    bytes += saved_in_extent(buffer.extent, division) * buffer.numbers * size_bytes_of(buffer.type);
  }
  return bytes;
}

void append(StateLayout& layout, const StateLayout& part) {
  layout.insert(layout.end(), part.begin(), part.end());
}

void save_buffer(StateWriter& writer, const StateBuffer& buffer, ConstView values) {
  const std::string name(buffer.name);
  if (buffer.kept == Kept::kReplicated) return writer.replicated(name, values);
  ONEBIT_INVARIANT(buffer.kept == Kept::kOwn);
  if (!values.empty() && values.elements() > 0) writer.own(name, values);
}

void load_buffer(const StateReader& reader, const StateBuffer& buffer, const Topology& topology,
                 View values) {
  const std::string name(buffer.name);
  if (buffer.kept == Kept::kReplicated) return reader.replicated(name, values);
  const int rank = topology.world().rank();
  const compress::Ownership before = saved_ownership(reader, topology.whole_elements());
  std::vector<float> saved;
  switch (buffer.on_other_ranks) {
    case OnOtherRanks::kMean:
      saved = before.sources() == topology.sources()
                  ? source_buffer(reader, before, name, topology.ownership().source_of(rank),
                                  topology.shares())
                  : mean_source_buffer(reader, topology.across(), before, name, topology.shares());
      break;
    case OnOtherRanks::kOwner:
      saved =
          owned_buffer(reader, name, before,
                       topology.sources() == 1 ? compress::owned_by_one(topology.whole_elements())
                                               : topology.ownership(),
                       rank);
      break;
    case OnOtherRanks::kRestart:
      saved = own_buffer(reader, name, rank, values.elements());
      break;
  }
  if (saved.empty()) return;
  copy(values, ConstView::of(saved.data(), {static_cast<int64_t>(saved.size())}));
}

StateTensors::StateTensors(StateLayout layout, const Topology& topology, Device device)
    : layout_(std::move(layout)) {
  const StateDivision division{topology.ownership(), topology.world().rank()};
  for (const StateBuffer& buffer : layout_) {
    const int64_t elements = in_extent(buffer.extent, division) * buffer.numbers;
    tensors_.push_back(buffer.instead ? Tensor() : Tensor::zeros(device, buffer.type, {elements}));
  }
}

void StateTensors::save(StateWriter& writer) const {
  for (size_t i = 0; i < layout_.size(); ++i) {
    if (is_part(layout_[i])) save_buffer(writer, layout_[i], tensors_[i].view());
  }
}

void StateTensors::load(const StateReader& reader, const Topology& topology) const {
  for (size_t i = 0; i < layout_.size(); ++i) {
    if (is_part(layout_[i])) load_buffer(reader, layout_[i], topology, tensors_[i].view());
  }
}

namespace {

void require_elements(const StateReader& reader, const std::string& name, int rank,
                      int64_t elements) {
  const int64_t saved = reader.own_elements(name, rank);
  require(saved == elements,
          "the checkpoint's {} of rank {} has {} elements, but the model needs {}: the checkpoint "
          "belongs to another model",
          name, rank, saved, elements);
}

int64_t elements_of(std::span<const compress::OwnedRange> wanted) {
  return wanted.empty() ? 0 : wanted.back().place + wanted.back().range.elements();
}

// The wanted elements whose places are in `places`, counted from its start.
std::vector<compress::OwnedRange> placed_in(std::span<const compress::OwnedRange> wanted,
                                            Range places) {
  std::vector<compress::OwnedRange> part;
  for (const auto& [range, place] : wanted) {
    const int64_t begin = std::max(place, places.begin);
    const int64_t end = std::min(place + range.elements(), places.end);
    if (begin >= end) continue;
    const int64_t shift = range.begin - place;
    part.push_back({.range = {begin + shift, end + shift}, .place = begin - places.begin});
  }
  return part;
}

// Whether every rank of a node has a part of every bucket.
bool divides(const compress::Ownership& saved) {
  const int64_t count = saved.buckets.count(), node = saved.ranks_per_source();
  for (int64_t bucket = 0; bucket < count; ++bucket) {
    const Range whole = saved.buckets.range(bucket);
    if (comm::chunk_of(whole, static_cast<int>(node), static_cast<int>(node) - 1).elements() == 0) {
      return false;
    }
  }
  for (int local = 0; local < node; ++local) {
    if (saved.share_buckets(saved.rank_of(0, local)).count() != count) return false;
  }
  return saved.sources() > 1;
}

void read_source(const StateReader& reader, const compress::Ownership& before,
                 const std::string& name, int source, std::span<const compress::OwnedRange> wanted,
                 std::span<float> to) {
  for (const compress::OwnedPiece& piece : compress::source_pieces(before, source, wanted)) {
    require_elements(reader, name, piece.from_rank,
                     before.share_buckets(piece.from_rank).elements());
    reader.own_of(name, piece.from_rank, piece.from,
                  to.subspan(static_cast<size_t>(piece.to), static_cast<size_t>(piece.elements)));
  }
}

}  // namespace

compress::Ownership saved_ownership(const StateReader& reader, int64_t elements) {
  compress::Ownership saved{
      .buckets = comm::Buckets(elements, reader.scalar("bucket_bytes").get<int64_t>()),
      .world_size = reader.saved_world_size()};
  const Json nodes = reader.scalar("nodes");
  if (nodes.is_null()) return saved;
  saved.nodes = comm::Nodes(nodes.get<std::vector<int>>());
  require(saved.nodes->ranks() == saved.world_size && saved.nodes->even() && divides(saved),
          "the checkpoint's state.json is damaged: `nodes` and `bucket_bytes` do not divide the "
          "buffer among its {} ranks; resume from another checkpoint with --resume TAG",
          saved.world_size);
  return saved;
}

void save_state_name(StateWriter& writer, const std::string& name) {
  writer.scalar("optimizer", name);
}

void check_state_name(const StateReader& reader, const std::string& name) {
  const Json saved = reader.scalar("optimizer");
  require(saved.is_string(),
          "the checkpoint's state.json names no optimizer: it is damaged or was written by another "
          "program; resume from another checkpoint with --resume TAG");
  require(
      saved.get<std::string>() == name,
      "the checkpoint contains the state of the optimizer {}, but the recipe selects {}: resume "
      "with the same optimizer.type, or start a new run from its model (--initialize-from)",
      saved.get<std::string>(), name);
}

std::vector<float> own_buffer(const StateReader& reader, const std::string& name, int rank,
                              int64_t elements) {
  require_elements(reader, name, rank, elements);
  std::vector<float> saved(static_cast<size_t>(elements));
  reader.own_of(name, rank, 0, saved);
  return saved;
}

std::vector<float> source_buffer(const StateReader& reader, const compress::Ownership& before,
                                 const std::string& name, int source,
                                 std::span<const compress::OwnedRange> wanted) {
  std::vector<float> values(static_cast<size_t>(elements_of(wanted)));
  read_source(reader, before, name, source, wanted, values);
  return values;
}

std::vector<float> mean_source_buffer(const StateReader& reader, comm::Communicator& communicator,
                                      const compress::Ownership& before, const std::string& name,
                                      std::span<const compress::OwnedRange> wanted) {
  const int64_t elements = elements_of(wanted);
  const Range chunk = comm::equal_chunk(elements, communicator.world_size(), communicator.rank());
  const std::vector<compress::OwnedRange> part = placed_in(wanted, chunk);
  std::vector<float> one(static_cast<size_t>(chunk.elements()));
  std::vector<double> sum(one.size(), 0.0);
  for (int source = 0; source < before.sources(); ++source) {
    read_source(reader, before, name, source, part, one);
    for (size_t i = 0; i < one.size(); ++i) sum[i] += one[i];
  }
  std::vector<float> mean(static_cast<size_t>(elements));
  for (size_t i = 0; i < sum.size(); ++i) {
    mean[static_cast<size_t>(chunk.begin) + i] = static_cast<float>(sum[i] / before.sources());
  }
  comm::gather_chunks(communicator, mean);
  return mean;
}

std::vector<float> owned_buffer(const StateReader& reader, const std::string& name,
                                const compress::Ownership& before, const compress::Ownership& now,
                                int rank) {
  std::vector<float> owned(static_cast<size_t>(now.owned_elements(rank)));
  for (const compress::OwnedPiece& piece : compress::owned_pieces(before, now, rank)) {
    require_elements(reader, name, piece.from_rank, before.owned_elements(piece.from_rank));
    reader.own_of(name, piece.from_rank, piece.from,
                  std::span(owned).subspan(static_cast<size_t>(piece.to),
                                           static_cast<size_t>(piece.elements)));
  }
  return owned;
}

}  // namespace onebit::optim
