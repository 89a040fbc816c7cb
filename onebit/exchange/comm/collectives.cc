#include "onebit/exchange/comm/collectives.h"

#include <functional>
#include <numeric>
#include <vector>

#include "onebit/ground/base/error.h"

namespace onebit::comm {
namespace {

// How a buffer is cut into one chunk per rank.
struct Cut {
  std::vector<int64_t> sizes;  // [ranks]
  int64_t own_begin = 0, own_size = 0;

  Cut(const Communicator& communicator, int64_t elements) {
    const int ranks = communicator.world_size();
    for (int of = 0; of < ranks; ++of) sizes.push_back(equal_chunk(elements, ranks, of).elements());
    const Range own = equal_chunk(elements, ranks, communicator.rank());
    own_begin = own.begin;
    own_size = own.elements();
  }
  std::vector<int64_t> sizes_bytes(int64_t element_bytes) const {
    std::vector<int64_t> bytes = sizes;
    for (int64_t& size : bytes) size *= element_bytes;
    return bytes;
  }
  template <typename T>
  std::span<T> own(std::span<T> values) const {
    return values.subspan(static_cast<size_t>(own_begin), static_cast<size_t>(own_size));
  }
};

template <typename T, typename Combine>
void reduce_in_chunks(Communicator& communicator, std::span<T> values, const Combine& combine) {
  const auto ranks = static_cast<size_t>(communicator.world_size());
  if (ranks == 1) return;
  const Cut cut(communicator, static_cast<int64_t>(values.size()));
  const std::vector<int64_t> sizes_bytes = cut.sizes_bytes(sizeof(T));
  const std::span<T> own = cut.own(values);
  const std::vector<int64_t> own_bytes(ranks, static_cast<int64_t>(own.size_bytes()));
  std::vector<T> received(own.size() * ranks);
  communicator.all_to_all_v({.send = std::as_bytes(values),
                             .send_bytes = sizes_bytes,
                             .receive = std::as_writable_bytes(std::span(received)),
                             .receive_bytes = own_bytes});
  for (size_t i = 0; i < own.size(); ++i) {
    T value = received[i];
    for (size_t from = own.size() + i; from < received.size(); from += own.size()) {
      value = combine(value, received[from]);
    }
    own[i] = value;
  }
  communicator.all_gather_v(std::as_bytes(own), std::as_writable_bytes(values), sizes_bytes);
}

}  // namespace

Range equal_chunk(int64_t elements, int world_size, int rank) {
  const int64_t share = elements / world_size, rest = elements % world_size;
  const auto begin_of = [&](int64_t of) { return of * share + of * rest / world_size; };
  return {begin_of(rank), begin_of(rank + 1)};
}

void gather_chunks(Communicator& communicator, std::span<float> values) {
  if (communicator.world_size() == 1) return;
  const Cut cut(communicator, static_cast<int64_t>(values.size()));
  communicator.all_gather_v(std::as_bytes(cut.own(values)), std::as_writable_bytes(values),
                            cut.sizes_bytes(sizeof(float)));
}

void broadcast_in_chunks(Communicator& communicator, std::span<std::byte> bytes, int root) {
  ONEBIT_INVARIANT(root >= 0 && root < communicator.world_size());
  if (communicator.world_size() == 1) return;
  const Cut cut(communicator, static_cast<int64_t>(bytes.size()));
  const bool gives = communicator.rank() == root;
  const std::vector<int64_t> nothing(cut.sizes.size());
  std::vector<int64_t> from_root = nothing;
  from_root[static_cast<size_t>(root)] = cut.own_size;
  // The root receives its own chunk in place.
  communicator.all_to_all_v({.send = gives ? bytes : std::span<std::byte>(),
                             .send_bytes = gives ? cut.sizes : nothing,
                             .receive = cut.own(bytes),
                             .receive_bytes = from_root});
  communicator.all_gather_v(cut.own(bytes), bytes, cut.sizes);
}

void sum_in_chunks(Communicator& communicator, std::span<float> values) {
  reduce_in_chunks(communicator, values, std::plus<float>());
}

void unite_in_chunks(Communicator& communicator, std::span<uint8_t> flags) {
  reduce_in_chunks(communicator, flags,
                   [](uint8_t left, uint8_t right) { return static_cast<uint8_t>(left | right); });
}

std::vector<std::string> gather_texts(Communicator& communicator, const std::string& mine) {
  const auto world = static_cast<size_t>(communicator.world_size());
  const auto own_bytes = static_cast<int64_t>(mine.size());
  std::vector<int64_t> sizes(world);
  communicator.all_gather(std::as_bytes(std::span(&own_bytes, 1)),
                          std::as_writable_bytes(std::span(sizes)));
  const int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  if (total == 0) return std::vector<std::string>(world);
  std::string all(static_cast<size_t>(total), '\0');
  communicator.all_gather_v(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)),
                            sizes);
  std::vector<std::string> texts;
  size_t offset = 0;
  for (const int64_t size : sizes) {
    texts.push_back(all.substr(offset, static_cast<size_t>(size)));
    offset += static_cast<size_t>(size);
  }
  return texts;
}

void run_on_all(Communicator& communicator, const char* what, const std::function<void()>& work) {
  std::string message;
  try {
    work();
  } catch (const std::exception& error) {
    message = failure_text(error);
    if (message.empty()) message.push_back('?');  // no text is no failure
  }
  const std::vector<std::string> all = gather_texts(communicator, message);
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (!all[rank].empty()) fail("{}, rank {}: {}", what, rank, all[rank]);
  }
}

bool replicas_agree(const ParameterTable& table, Communicator& communicator) {
  const ConstView values = table.values();
  const Tensor staged = values.device().is_cpu() ? Tensor() : to_cpu_f32(values);
  const auto* words = static_cast<const uint32_t*>(
      values.device().is_cpu() ? values.raw() : static_cast<const void*>(staged.data<float>()));
  uint64_t hash = 0xCBF29CE484222325ull;
  for (int64_t index = 0; index < values.elements(); ++index) {
    hash = (hash ^ words[index]) * 0x100000001B3ull;
  }
  int64_t least = static_cast<int64_t>(hash), most = least;
  communicator.all_reduce(std::span(&least, 1), Reduction::kMin);
  communicator.all_reduce(std::span(&most, 1), Reduction::kMax);
  return least == most;
}

void broadcast_values(ParameterTable& table, Communicator& communicator) {
  // Ranks usually have initialized or read the same values.
  if (communicator.world_size() == 1 || replicas_agree(table, communicator)) return;
  std::vector<float> values(static_cast<size_t>(table.size_elements()));
  const View staged = View::of(values.data(), {table.size_elements()});
  copy(staged, table.values());
  broadcast_in_chunks(communicator, std::as_writable_bytes(std::span(values)), 0);
  copy(table.values(), staged);
}

}  // namespace onebit::comm
