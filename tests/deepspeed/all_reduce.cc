#include "tests/deepspeed/all_reduce.h"

#include <cmath>
#include <cstring>
#include <numeric>

#include "onebit/exchange/optim/state_layout.h"
#include "onebit/ground/base/error.h"

namespace onebit::deepspeed {
namespace {

// Computes the signs of `values`, most significant bit first, and returns their RMS scale. Replaces
// `values` with the residual.
float compress_signs(std::span<float> values, std::vector<uint8_t>& signs) {
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * value;
  const auto scale = static_cast<float>(std::sqrt(squares / static_cast<double>(values.size())));
  std::fill(signs.begin(), signs.end(), uint8_t{0});
  for (size_t i = 0; i < values.size(); ++i) {
    const bool positive = values[i] >= 0;
    if (positive) signs[i / 8] = static_cast<uint8_t>(signs[i / 8] | (0x80u >> (i % 8)));
    values[i] -= positive ? scale : -scale;
  }
  return scale;
}

float signed_scale(const uint8_t* signs, size_t element, float scale) {
  return (signs[element / 8] & (0x80u >> (element % 8))) != 0 ? scale : -scale;
}

// A message: the scale, then sign bytes.
void put_message(std::byte* to, float scale, const uint8_t* signs, size_t sign_bytes) {
  std::memcpy(to, &scale, sizeof scale);
  std::memcpy(to + sizeof scale, signs, sign_bytes);
}

ConstView view_of(std::span<const float> values) {
  return ConstView::of(values.data(), {static_cast<int64_t>(values.size())});
}

}  // namespace

int64_t padded_elements(int64_t elements, int world_size) {
  const int64_t unit = world_size * std::lcm(int64_t{8}, int64_t{world_size});
  return (elements + unit - 1) / unit * unit;
}

AllReduce::AllReduce(comm::Communicator& communicator, int64_t elements)
    : communicator_(communicator),
      elements_(elements),
      padded_elements_(padded_elements(elements, communicator.world_size())),
      chunk_elements_(padded_elements_ / communicator.world_size()),
      worker_residual_(static_cast<size_t>(padded_elements_)),
      server_residual_(static_cast<size_t>(chunk_elements_)),
      worker_signs_(static_cast<size_t>(padded_elements_ / 8)),
      server_signs_(static_cast<size_t>(chunk_elements_ / 8)) {}

void AllReduce::run(std::span<float> values) {
  ONEBIT_INVARIANT(static_cast<int64_t>(values.size()) == elements_);
  const auto world = static_cast<size_t>(communicator_.world_size());
  const auto chunk = static_cast<size_t>(chunk_elements_);
  const size_t sign_bytes = chunk / 8, message_bytes = sizeof(float) + sign_bytes;

  // The padding of worker_residual_ has its own residual, as in the original.
  for (size_t i = 0; i < values.size(); ++i) worker_residual_[i] += values[i];
  worker_scale_ = compress_signs(worker_residual_, worker_signs_);
  std::vector<std::byte> send(world * message_bytes), received(world * message_bytes);
  for (size_t rank = 0; rank < world; ++rank) {
    put_message(send.data() + rank * message_bytes, worker_scale_,
                worker_signs_.data() + rank * sign_bytes, sign_bytes);
  }
  const std::vector<int64_t> sizes_bytes(world, static_cast<int64_t>(message_bytes));
  communicator_.all_to_all_v(
      {.send = send, .send_bytes = sizes_bytes, .receive = received, .receive_bytes = sizes_bytes});

  const auto decode = [&](const std::vector<std::byte>& messages, size_t rank, auto&& take) {
    float scale;
    const std::byte* message = messages.data() + rank * message_bytes;
    std::memcpy(&scale, message, sizeof scale);
    const auto* signs = reinterpret_cast<const uint8_t*>(message + sizeof scale);
    for (size_t i = 0; i < chunk; ++i) take(i, signed_scale(signs, i, scale));
  };
  std::vector<float> sum(chunk);
  for (size_t rank = 0; rank < world; ++rank) {
    decode(received, rank, [&](size_t i, float value) { sum[i] += value; });
  }
  for (size_t i = 0; i < chunk; ++i) server_residual_[i] += sum[i] / static_cast<float>(world);
  server_scale_ = compress_signs(server_residual_, server_signs_);

  std::vector<std::byte> result(message_bytes), gathered(world * message_bytes);
  put_message(result.data(), server_scale_, server_signs_.data(), sign_bytes);
  communicator_.all_gather(result, gathered);
  for (size_t rank = 0; rank < world; ++rank) {
    decode(gathered, rank, [&](size_t i, float value) {
      const size_t place = rank * chunk + i;
      if (place < values.size()) values[place] = value;
    });
  }
}

void AllReduce::save(optim::StateWriter& writer, const std::string& suffix) const {
  writer.own("worker_residual" + suffix, view_of(worker_residual_));
  writer.own("server_residual" + suffix, view_of(server_residual_));
}

void AllReduce::load(const optim::StateReader& reader, const std::string& suffix) {
  const auto restore = [&](const std::string& name, std::vector<float>& residual) {
    residual = optim::own_buffer(reader, name + suffix, communicator_.rank(),
                                 static_cast<int64_t>(residual.size()));
  };
  restore("worker_residual", worker_residual_);
  restore("server_residual", server_residual_);
}

int64_t AllReduce::size_bytes() const {
  return static_cast<int64_t>((worker_residual_.size() + server_residual_.size()) * sizeof(float));
}

}  // namespace onebit::deepspeed
