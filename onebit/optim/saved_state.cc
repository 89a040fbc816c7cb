#include "onebit/optim/saved_state.h"

#include "onebit/base/error.h"
#include "onebit/base/json.h"
#include "onebit/comm/chunked.h"

namespace onebit::optim {
namespace {

void require_elements(const params::StateReader& reader, const std::string& name, int rank,
                      int64_t elements) {
  const int64_t saved = reader.own_elements(name, rank);
  require(
      saved == elements,
      "the checkpoint's {} of rank {} has {} elements, the model needs {}: it belongs to another "
      "model",
      name, rank, saved, elements);
}

}  // namespace

void save_state_name(params::StateWriter& writer, const std::string& name) {
  writer.scalar("optimizer", name);
}

void check_state_name(const params::StateReader& reader, const std::string& name) {
  const Json saved = reader.scalar("optimizer");
  require(saved.is_string(), "the checkpoint holds no optimizer state");
  require(saved.get<std::string>() == name,
          "the checkpoint holds the state of the optimizer {}, the recipe asks for {}: resume with "
          "the same optimizer.type, or start a new run from its model (--initialize-from)",
          saved.get<std::string>(), name);
}

std::vector<float> own_buffer(const params::StateReader& reader, const std::string& name, int rank,
                              int64_t elements) {
  require_elements(reader, name, rank, elements);
  std::vector<float> saved(static_cast<size_t>(elements));
  reader.own_of(name, rank, 0, saved);
  return saved;
}

std::vector<float> mean_own_buffer(const params::StateReader& reader,
                                   comm::Communicator& communicator, const std::string& name,
                                   int64_t elements) {
  const comm::Range chunk =
      comm::equal_chunk(elements, communicator.world_size(), communicator.rank());
  std::vector<float> one(static_cast<size_t>(chunk.elements()));
  std::vector<double> sum(one.size(), 0.0);
  const int saved = reader.saved_world_size();
  for (int rank = 0; rank < saved; ++rank) {
    require_elements(reader, name, rank, elements);
    reader.own_of(name, rank, chunk.begin, one);
    for (size_t i = 0; i < one.size(); ++i) sum[i] += one[i];
  }
  std::vector<float> mean(static_cast<size_t>(elements));
  for (size_t i = 0; i < sum.size(); ++i) {
    mean[static_cast<size_t>(chunk.begin) + i] = static_cast<float>(sum[i] / saved);
  }
  comm::gather_chunks(communicator, mean);
  return mean;
}

std::vector<float> owned_buffer(const params::StateReader& reader, const std::string& name,
                                const compress::Ownership& before, const compress::Ownership& now,
                                int rank) {
  std::vector<float> owned(static_cast<size_t>(now.buckets.owned_elements(now.world_size, rank)));
  for (const compress::OwnedPiece& piece : compress::owned_pieces(before, now, rank)) {
    require_elements(reader, name, piece.from_rank,
                     before.buckets.owned_elements(before.world_size, piece.from_rank));
    reader.own_of(name, piece.from_rank, piece.from,
                  std::span(owned).subspan(static_cast<size_t>(piece.to),
                                           static_cast<size_t>(piece.elements)));
  }
  return owned;
}

}  // namespace onebit::optim
