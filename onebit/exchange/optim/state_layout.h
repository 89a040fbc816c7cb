// The state of an optimizer, declared once. Each buffer states its name in checkpoints, its number
// of elements, how the ranks divide it, and in which phases it exists. The memory of a rank, the
// size of a checkpoint, the figures of `onebit plan`, saving, loading on other ranks and the table
// of docs/checkpoint-format.md (a test compares) follow from that.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/compress/owned_pieces.h"
#include "onebit/exchange/optim/optimizer.h"
#include "onebit/exchange/optim/topology.h"
#include "onebit/ground/base/json_fwd.h"
#include "onebit/math/tensor/tensor.h"
#include "onebit/math/tensor/view.h"

namespace onebit::optim {

// The interface through which an optimizer saves its state to a checkpoint and loads it.

// Every value is copied before the call returns: training may continue while a file is written.
class StateWriter {
 public:
  virtual ~StateWriter() = default;
  // Small values, equal on every rank.
  virtual void scalar(const std::string& name, Json value) = 0;
  // A flat f32 buffer equal on every rank: each rank stores its part of it.
  virtual void replicated(const std::string& name, ConstView flat) = 0;
  // A flat f32 buffer that belongs to this rank only (error feedback).
  virtual void own(const std::string& name, ConstView flat) = 0;
};

class StateReader {
 public:
  virtual ~StateReader() = default;
  // Null when the checkpoint has no such value.
  virtual Json scalar(const std::string& name) const = 0;
  // Error: absent, or of another size.
  virtual void replicated(const std::string& name, View flat) const = 0;
  // The number of ranks that wrote the checkpoint.
  virtual int saved_world_size() const = 0;
  // The own() buffer saved by rank `rank`, for any current world size: its number of elements, and
  // the elements from `begin` on, as many as `to` holds (no others are read). Error: absent, or
  // shorter.
  virtual int64_t own_elements(const std::string& name, int rank) const = 0;
  virtual void own_of(const std::string& name, int rank, int64_t begin,
                      std::span<float> to) const = 0;
};

// Blocks of the flat buffer form groups, for statistics that need more elements than a block has.
constexpr int64_t kBlocksInGroup = 16;
constexpr int64_t groups_of(int64_t blocks) {
  return (blocks + kBlocksInGroup - 1) / kBlocksInGroup;
}

// What the number of elements depends on.
enum class Extent {
  kWhole,         // the flat buffer
  kShare,         // a rank's share of it, which is all of it on one level
  kOwned,         // the chunks that a rank owns in the exchange
  kShareBlocks,   // blocks of the share
  kBlockGroups,   // groups of blocks of the flat buffer
  kBucket,        // the largest bucket of the share
  kBucketBlocks,  // its blocks
  kCoded,         // bytes of the coded share
  kNumber         // nothing
};

enum class Kept {
  kReplicated,  // in checkpoints, equal on all ranks
  kOwn,         // in checkpoints, each rank's own
  kScratch      // not in checkpoints
};

// A buffer that exists in all phases is saved in the compressed one only: before, it is zero.
enum class Exists { kAlways, kBeforeFreeze, kAfterFreeze };

// The contents of an own buffer on other ranks than those that saved.
enum class OnOtherRanks {
  kMean,    // the mean over sources
  kOwner,   // every element moves to the rank that owns it now
  kRestart  // zero
};

struct StateBuffer {
  std::string_view name;
  Extent extent = Extent::kWhole;
  int64_t numbers = 1;  // for each element or block of the extent
  Kept kept = Kept::kScratch;
  OnOtherRanks on_other_ranks = OnOtherRanks::kRestart;
  Exists exists = Exists::kAlways;
  DType type = DType::kF32;
  bool on_host = false;  // not part of the optimizer's memory on the device
  // Saved in other steps than the own buffers of its optimizer, which take more space.
  bool instead = false;
};
using StateLayout = std::vector<StateBuffer>;

// How the ranks divide a flat buffer, seen from one of them.
struct StateDivision {
  compress::Ownership ownership;
  int rank = 0;

  // An optimizer whose state is the same on every rank.
  static StateDivision whole(int64_t elements) { return {compress::owned_by_one(elements)}; }
};

struct StateSizes {
  StateLayout layout;
  StateDivision division;

  // The memory of the division's rank in `phase`.
  int64_t memory_bytes(Phase phase) const;
  // Bytes that the ranks together write into a checkpoint made in `phase`.
  int64_t saved_bytes(Phase phase) const;
};

// Appends a part to a layout.
void append(StateLayout& layout, const StateLayout& part);

// Writes a buffer under its name, or nothing if it has no elements.
void save_buffer(StateWriter&, const StateBuffer&, ConstView values);
// Reads it. Other ranks or buckets than those that saved get what `on_other_ranks` states.
// Collective.
void load_buffer(const StateReader&, const StateBuffer&, const Topology&, View values);

// The tensors of a layout, in its order.
class StateTensors {
 public:
  StateTensors() = default;
  // Reserves the buffers, zeros.
  StateTensors(StateLayout layout, const Topology& topology, Device device);

  // Empty without such a buffer.
  View operator[](size_t index) const {
    return index < tensors_.size() ? tensors_[index].view() : View();
  }
  // The buffers that are kept in checkpoints.
  void save(StateWriter&) const;
  void load(const StateReader&, const Topology&) const;

 private:
  StateLayout layout_;
  std::vector<Tensor> tensors_;
};

// The state of an optimizer in a checkpoint: the optimizer's name, and buffers that each belong to
// one rank.
void save_state_name(StateWriter&, const std::string& name);
// Error, with both names: the state belongs to another optimizer.
void check_state_name(const StateReader&, const std::string& name);

// How the ranks that saved had divided their exchange of `elements`, as written by OwnedMomentum.
compress::Ownership saved_ownership(const StateReader&, int64_t elements);

// If the number of sources is the same as when saved, each of these functions reads and sends about
// as much as the buffer of one rank. Error: a saved buffer does not have the number of elements
// that this model needs.

// The buffer `name` f32 [elements] that `rank` saved.
std::vector<float> own_buffer(const StateReader& reader, const std::string& name, int rank,
                              int64_t elements);

// For each rank the elements `wanted` of its source, from the buffers `name` that sources saved
// under `before`.
std::vector<float> source_buffer(const StateReader& reader, const compress::Ownership& before,
                                 const std::string& name, int source,
                                 std::span<const compress::OwnedRange> wanted);

// The mean over all sources that saved, the same on every rank of `communicator`, all of which want
// the same elements: each reads a chunk of every buffer and sends its mean to the others.
// Collective.
std::vector<float> mean_source_buffer(const StateReader& reader, comm::Communicator& communicator,
                                      const compress::Ownership& before, const std::string& name,
                                      std::span<const compress::OwnedRange> wanted);

// The elements that `rank` owns under `now`, read from the buffers `name` that owners saved under
// `before`.
std::vector<float> owned_buffer(const StateReader& reader, const std::string& name,
                                const compress::Ownership& before, const compress::Ownership& now,
                                int rank);

}  // namespace onebit::optim
