#include "tests/muon/matrix_exchange.h"

#include <algorithm>
#include <numeric>

#include "onebit/exchange/compress/sign_codec.h"

namespace onebit::muon {
namespace {

View chunk_at(std::vector<std::byte>& message, int64_t place, int64_t elements) {
  return View(message.data() + place, DType::kU8, {compress::chunk_bytes(elements)}, Device{});
}

compress::BlockRange all_blocks(int64_t elements) {
  return {0, compress::blocks_in(elements)};
}

void encode(Context& context, ConstView values, View residual, View chunk) {
  const int64_t elements = residual.elements();
  compress::encode(context, {.values = values.reshaped({elements}),
                             .residual = residual,
                             .still = {},
                             .extras = {},
                             .chunk = chunk,
                             .block_squares = {},
                             .blocks = all_blocks(elements)});
}

void decode(Context& context, ConstView chunk, View values) {
  const int64_t elements = values.elements();
  compress::decode(context, {.chunk = chunk,
                             .elements = elements,
                             .still = {},
                             .values = values.reshaped({elements}),
                             .extras = {},
                             .blocks = all_blocks(elements)});
}

std::vector<int64_t> places_of(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> places(sizes.size());
  std::exclusive_scan(sizes.begin(), sizes.end(), places.begin(), int64_t{0});
  return places;
}

}  // namespace

MatrixExchange::MatrixExchange(comm::Communicator& communicator,
                               const std::vector<int64_t>& elements)
    : communicator_(communicator), message_bytes_(static_cast<size_t>(communicator.world_size())) {
  int64_t largest = 0;
  for (const int64_t size : elements) {
    const int owner = static_cast<int>(matrices_.size()) % communicator.world_size();
    int64_t& bytes = message_bytes_[static_cast<size_t>(owner)];
    Matrix& matrix = matrices_.emplace_back();
    matrix = {.elements = size, .owner = owner, .place = bytes};
    matrix.worker_residual = Tensor::zeros(Device{}, DType::kF32, {size});
    if (owner == communicator.rank()) {
      matrix.owner_residual = Tensor::zeros(Device{}, DType::kF32, {size});
    }
    bytes += compress::chunk_bytes(size);
    largest = std::max(largest, size);
  }
  message_places_ = places_of(message_bytes_);
  const auto all_bytes = static_cast<size_t>(message_places_.back() + message_bytes_.back());
  const auto own_bytes =
      static_cast<size_t>(message_bytes_[static_cast<size_t>(communicator.rank())]);
  to_owners_.resize(all_bytes);
  from_owners_.resize(all_bytes);
  mine_.resize(own_bytes);
  from_workers_.resize(own_bytes * message_bytes_.size());
  decoded_ = Tensor(Device{}, DType::kF32, {largest});
}

void MatrixExchange::run(Context& context, std::span<const View> matrices,
                         const OwnerStep& owner_step) {
  send(context, matrices);
  reduce(context, matrices, owner_step);
  receive(context, matrices);
}

void MatrixExchange::send(Context& context, std::span<const View> matrices) {
  for (size_t i = 0; i < matrices_.size(); ++i) {
    const Matrix& matrix = matrices_[i];
    const int64_t place = message_places_[static_cast<size_t>(matrix.owner)] + matrix.place;
    encode(context, matrices[i], matrix.worker_residual.view(),
           chunk_at(to_owners_, place, matrix.elements));
  }
  const std::vector<int64_t> received(message_bytes_.size(), static_cast<int64_t>(mine_.size()));
  communicator_.all_to_all_v({.send = to_owners_,
                              .send_bytes = message_bytes_,
                              .receive = from_workers_,
                              .receive_bytes = received});
}

void MatrixExchange::reduce(Context& context, std::span<const View> matrices,
                            const OwnerStep& owner_step) {
  const int ranks = communicator_.world_size();
  for (size_t i = 0; i < matrices_.size(); ++i) {
    const Matrix& matrix = matrices_[i];
    if (matrix.owner != communicator_.rank()) continue;
    const View decoded = decoded_.first_rows(matrix.elements);
    float* const average = matrices[i].data<float>();
    std::fill_n(average, matrix.elements, 0.0f);
    for (int rank = 0; rank < ranks; ++rank) {
      const int64_t place = rank * static_cast<int64_t>(mine_.size()) + matrix.place;
      decode(context, chunk_at(from_workers_, place, matrix.elements), decoded);
      const float* const values = decoded.data<float>();
      for (int64_t k = 0; k < matrix.elements; ++k) {
        average[k] += values[k] / static_cast<float>(ranks);
      }
    }
    owner_step(i, matrices[i]);
    encode(context, matrices[i], matrix.owner_residual.view(),
           chunk_at(mine_, matrix.place, matrix.elements));
  }
}

void MatrixExchange::receive(Context& context, std::span<const View> matrices) {
  communicator_.all_gather_v(mine_, from_owners_, message_bytes_);
  for (size_t i = 0; i < matrices_.size(); ++i) {
    const Matrix& matrix = matrices_[i];
    const int64_t place = message_places_[static_cast<size_t>(matrix.owner)] + matrix.place;
    decode(context, chunk_at(from_owners_, place, matrix.elements), matrices[i]);
  }
}

}  // namespace onebit::muon
