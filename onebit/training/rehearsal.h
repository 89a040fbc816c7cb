// Rehearses steps before the first one: forward and backward passes of real data while buckets
// travel. The parts of a step that were measured alone (step_costs.h) slow each other down where
// they share cores and memory, which no sum of theirs shows: a rank's computation and its exchange
// thread, the thread and the kernel's side of TCP, ranks on one core.
#pragma once

#include <functional>

#include "onebit/training/step_costs.h"

namespace onebit::training {

// An exchange as the network and the processor see it.
struct StandIn {
  comm::Communicator& communicator;
  comm::Buckets buckets;                                // which this rank exchanges
  comm::Buckets announced;                              // of the whole buffer, as many
  std::function<int64_t(int64_t elements)> wire_bytes;  // of a chunk
  double packing_seconds = 0;  // of a whole bucket, timed while all ranks do it
};

// Seconds of a forward and backward pass whose buckets leave as they are ready, until the last one
// has arrived: the shortest of those that fit into `at_most_seconds` (seven at most, at least
// three, and before them one that does not count), on the slowest rank. Every bucket sends its
// bytes without their meaning, and before that keeps the exchange thread busy for its packing.
// Collective.
double rehearse(const AnnouncingPass& pass, const Context& computing, const StandIn& exchange,
                comm::Communicator& communicator, double at_most_seconds = 8);

// Fills the delays of `costs`: what a rehearsed step took longer than its parts say; the lower of
// two rehearsals where that is more than a quarter. A phase is not rehearsed whose buckets leave
// after the backward pass (its parts run alone), nor one whose step takes over ten seconds (there
// the network decides); nor is any on a GPU or with one rank. Collective.
void rehearse_steps(StepCosts& costs, const AnnouncingPass& pass, Context& context,
                    const params::Table& table, const ExchangeBuckets& buckets,
                    const engine::EngineConfig& config, comm::Communicator& communicator);

}  // namespace onebit::training
