// Rehearses steps before the first one: forward and backward passes over real data while buckets
// are exchanged. The parts of a step that were measured alone (step_costs.h) slow each other down
// where they share cores and memory, which the sum of their times does not contain: a rank's
// computation and its exchange thread, that thread and the kernel's side of TCP, ranks on one core.
#pragma once

#include <functional>

#include "onebit/training/costs/step_costs.h"

namespace onebit::costs {

// An exchange as the network and the processor see it.
struct StandIn {
  comm::Communicator& communicator;
  comm::Buckets buckets;                                // that this rank exchanges
  comm::Buckets announced;                              // of the whole flat buffer, equally many
  std::function<int64_t(int64_t elements)> wire_bytes;  // of a chunk
  double packing_seconds = 0;  // of a whole bucket, timed while all ranks pack
};

// Seconds of a forward and backward pass whose buckets are sent when they are ready, until the last
// one has arrived, on the slowest rank: the shortest of the passes that fit into `at_most_seconds`
// (three to seven, after one that does not count). Each bucket keeps the exchange thread busy for
// its packing time and then sends its number of bytes with meaningless contents. Collective.
double rehearse(const AnnouncingPass& pass, const Context& computing, const StandIn& exchange,
                comm::Communicator& communicator, double at_most_seconds = 8);

// Fills the delays of `costs`: the time by which a rehearsed step exceeds the prediction from its
// parts, or the lower of two rehearsals if the excess is over a quarter. A phase is not rehearsed
// if its buckets are sent after the backward pass (its parts run alone) or its step takes over ten
// seconds (the network dominates). Nothing is rehearsed on a GPU or with one rank. Collective.
void rehearse_steps(StepCosts& costs, const AnnouncingPass& pass, Context& context,
                    const ParameterTable& table, const ExchangeBuckets& buckets,
                    const engine::EngineConfig& config, comm::Communicator& communicator);

}  // namespace onebit::costs
