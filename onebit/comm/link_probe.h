// A short measurement of what the network between the ranks can do, for the prediction printed at
// start-up.
#pragma once

#include <cstdint>

#include "onebit/comm/communicator.h"

namespace onebit::comm {

struct LinkSpeed {
  double latency_seconds = 0;   // of one small collective
  double bytes_per_second = 0;  // sent by each rank while all send to all
};

// Takes about `seconds`. Collective; every rank ends with the same numbers, those of the slowest
// rank. A single rank gets latency 0 and infinite speed.
LinkSpeed probe_link(Communicator& communicator, double seconds = 0.2);

// Time to send `bytes` from each rank in `collectives` collectives.
double predicted_seconds(const LinkSpeed& link, int64_t bytes, int64_t collectives);

}  // namespace onebit::comm
