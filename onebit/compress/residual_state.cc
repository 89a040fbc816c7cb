#include "onebit/compress/residual_state.h"

#include <algorithm>

#include "onebit/base/error.h"

namespace onebit::compress {
namespace {

// Calls body(place in the flat buffer, place among the owned elements, elements) for every chunk.
template <typename Body>
void over_owned_chunks(const comm::Buckets& buckets, int world_size, int rank, const Body& body) {
  int64_t owned = 0;
  for (int64_t bucket = 0; bucket < buckets.count(); ++bucket) {
    const comm::Range chunk = comm::chunk_of(buckets.range(bucket), world_size, rank);
    body(chunk.begin, owned, chunk.elements());
    owned += chunk.elements();
  }
}

void check_sizes(const comm::Buckets& buckets, int world_size, int rank, size_t full,
                 size_t owned) {
  const int64_t expected = buckets.owned_elements(world_size, rank);
  require(
      static_cast<int64_t>(full) == buckets.elements() && static_cast<int64_t>(owned) == expected,
      "the server residual of rank {} of {} has {} elements of {}, but {} of {} are expected: "
      "it was saved for another model or another bucket size",
      rank, world_size, owned, full, expected, buckets.elements());
}

}  // namespace

void merge_worker_residual(std::span<const float> residual, int old_world_size,
                           std::span<float> merged) {
  require(residual.size() == merged.size(),
          "a worker residual of {} elements does not fit a model of {}", residual.size(),
          merged.size());
  const float share = 1.0f / static_cast<float>(old_world_size);
  for (size_t i = 0; i < merged.size(); ++i) merged[i] += residual[i] * share;
}

void spread_server_residual(const comm::Buckets& buckets, int world_size, int rank,
                            std::span<const float> owned, std::span<float> full) {
  check_sizes(buckets, world_size, rank, full.size(), owned.size());
  over_owned_chunks(buckets, world_size, rank, [&](int64_t place, int64_t from, int64_t elements) {
    std::copy_n(owned.begin() + from, elements, full.begin() + place);
  });
}

void take_server_residual(const comm::Buckets& buckets, int world_size, int rank,
                          std::span<const float> full, std::span<float> owned) {
  check_sizes(buckets, world_size, rank, full.size(), owned.size());
  over_owned_chunks(buckets, world_size, rank, [&](int64_t place, int64_t to, int64_t elements) {
    std::copy_n(full.begin() + place, elements, owned.begin() + to);
  });
}

}  // namespace onebit::compress
