#include "onebit/exchange/optim/state_layout.h"

#include <string>
#include <utility>

#include "onebit/exchange/comm/bucket.h"
#include "onebit/exchange/compress/compressed_all_reduce.h"
#include "onebit/exchange/optim/noise_ratio.h"
#include "onebit/exchange/optim/saved_state.h"
#include "onebit/ground/base/error.h"

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
      return NoiseRatio::groups_in(comm::blocks_in(whole));
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

}  // namespace onebit::optim
