#include "onebit/exchange/comm/communicator.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/run_event.h"
#include "onebit/math/device/memory.h"

namespace onebit::comm {
namespace {

template <typename T>
T combine(T left, T right, Reduction reduction) {
  const bool right_is_nan = std::isnan(static_cast<double>(right));
  switch (reduction) {
    case Reduction::kMax:
      return right > left || right_is_nan ? right : left;
    case Reduction::kMin:
      return right < left || right_is_nan ? right : left;
    case Reduction::kSum:
      break;
  }
  return left + right;
}

// Gathers the values of all ranks, then combines them here, in rank order.
template <typename T>
class ReduceState : public Request::State {
 public:
  ReduceState(std::span<T> values, int world_size, Reduction reduction)
      : values_(values),
        gathered_(values.size() * static_cast<size_t>(world_size)),
        reduction_(reduction) {}

  std::span<T> gathered() { return gathered_; }
  void set_request(Request request) { request_ = std::move(request); }

  bool test() override {
    if (!request_.test()) return false;
    reduce();
    return true;
  }
  void wait() override {
    request_.wait();
    reduce();
  }

 private:
  void reduce() {
    const size_t count = values_.size();
    for (size_t i = 0; i < count; ++i) {
      T value = gathered_[i];
      for (size_t from = count + i; from < gathered_.size(); from += count) {
        value = combine(value, gathered_[from], reduction_);
      }
      values_[i] = value;
    }
  }

  std::span<T> values_;
  std::vector<T> gathered_;
  Reduction reduction_;
  Request request_;
};

// Cuts the message for each rank out of one buffer. Error: the sizes do not add up to it.
template <typename Byte>
std::vector<std::span<Byte>> cut(std::span<Byte> bytes, std::span<const int64_t> sizes_bytes,
                                 std::string_view operation) {
  std::vector<std::span<Byte>> parts;
  parts.reserve(sizes_bytes.size());
  size_t offset = 0;
  for (const int64_t size : sizes_bytes) {
    ONEBIT_INVARIANT(size >= 0);
    require(offset + static_cast<size_t>(size) <= bytes.size(),
            "{}: the sizes given for the ranks exceed the buffer of {} bytes", operation,
            bytes.size());
    parts.push_back(bytes.subspan(offset, static_cast<size_t>(size)));
    offset += static_cast<size_t>(size);
  }
  require(offset == bytes.size(),
          "{}: the sizes given for the ranks add up to {} bytes, but the buffer has {}", operation,
          offset, bytes.size());
  return parts;
}

}  // namespace

PeerError::PeerError(int failed_rank, const std::string& failed_message)
    : Error(fmt::format("rank {} failed: {}", failed_rank, failed_message)),
      failed_rank_(failed_rank) {}

bool Request::test() {
  if (state_ == nullptr) return true;
  if (!state_->test()) return false;
  state_.reset();
  return true;
}

void Request::wait() {
  if (state_ == nullptr) return;
  state_->wait();
  state_.reset();
}

void Communicator::set_nodes(Nodes nodes) {
  ONEBIT_INVARIANT(nodes.ranks() == world_size_);
  nodes_ = std::move(nodes);
}

std::unique_ptr<Communicator> Communicator::duplicate() {
  std::unique_ptr<Communicator> copy = make_duplicate();
  copy->nodes_ = nodes_;
  copy->inside_node_ = inside_node_;
  return copy;
}

std::unique_ptr<Communicator> Communicator::split(int color) {
  ONEBIT_INVARIANT(color >= 0);
  std::vector<int64_t> colors(static_cast<size_t>(world_size_), color);
  const std::span<const int64_t> all = colors;
  all_gather(std::as_bytes(all.subspan(static_cast<size_t>(rank_), 1)),
             std::as_writable_bytes(std::span(colors)));
  std::vector<int> members;
  for (int rank = 0; rank < world_size_; ++rank) {
    if (colors[static_cast<size_t>(rank)] == color) members.push_back(rank);
  }
  std::unique_ptr<Communicator> part = make_split(color, members);
  part->nodes_ = nodes_.of(members);
  part->inside_node_ = inside_node_;
  return part;
}

Request Communicator::start_counted(Messages messages) {
  int64_t size_bytes = 0, inside_bytes = 0;
  for (int peer = 0; peer < world_size_; ++peer) {
    const auto bytes = static_cast<int64_t>(messages.send[static_cast<size_t>(peer)].size());
    size_bytes += bytes;
    if (nodes_.node_of(peer) == nodes_.node_of(rank_)) inside_bytes += bytes;
  }
  wire_bytes_sent_.fetch_add(size_bytes, std::memory_order_relaxed);
  inside_node_->fetch_add(inside_bytes, std::memory_order_relaxed);
  if (world_size_ == 1) return Request();
  return Request(start(std::move(messages)));
}

void Communicator::copy_own(std::byte* to, const std::byte* from, int64_t size_bytes) {
  memory::copy(Device{}, to, Device{}, from, size_bytes);
}

template <typename T>
Request Communicator::reduce(std::span<T> values, Reduction reduction) {
  if (world_size_ == 1) return Request();
  auto state = std::make_unique<ReduceState<T>>(values, world_size_, reduction);
  state->set_request(start_all_gather(std::as_bytes(std::span<const T>(values)),
                                      std::as_writable_bytes(state->gathered())));
  return Request(std::move(state));
}

Request Communicator::start_all_reduce(std::span<float> values, Reduction reduction) {
  return reduce(values, reduction);
}
Request Communicator::start_all_reduce(std::span<double> values, Reduction reduction) {
  return reduce(values, reduction);
}
Request Communicator::start_all_reduce(std::span<int64_t> values, Reduction reduction) {
  return reduce(values, reduction);
}
void Communicator::all_reduce(std::span<float> values, Reduction reduction) {
  start_all_reduce(values, reduction).wait();
}
void Communicator::all_reduce(std::span<double> values, Reduction reduction) {
  start_all_reduce(values, reduction).wait();
}
void Communicator::all_reduce(std::span<int64_t> values, Reduction reduction) {
  start_all_reduce(values, reduction).wait();
}

Request Communicator::start_all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  const std::vector<int64_t> sizes_bytes(static_cast<size_t>(world_size_),
                                         static_cast<int64_t>(mine.size()));
  return start_all_gather_v(mine, all, sizes_bytes);
}

void Communicator::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  start_all_gather(mine, all).wait();
}

Request Communicator::start_all_gather_v(std::span<const std::byte> mine, std::span<std::byte> all,
                                         std::span<const int64_t> sizes_bytes) {
  const auto world = static_cast<size_t>(world_size_), self = static_cast<size_t>(rank_);
  ONEBIT_INVARIANT(sizes_bytes.size() == world);
  ONEBIT_INVARIANT(sizes_bytes[self] == static_cast<int64_t>(mine.size()));
  Messages messages{.operation = "all_gather",
                    .send = std::vector<std::span<const std::byte>>(world, mine),
                    .receive = cut(all, sizes_bytes, "all_gather")};
  messages.send[self] = {};
  const std::span<std::byte> own = std::exchange(messages.receive[self], {});
  if (own.data() != mine.data() && !mine.empty()) {
    copy_own(own.data(), mine.data(), static_cast<int64_t>(mine.size()));
  }
  return start_counted(std::move(messages));
}

void Communicator::all_gather_v(std::span<const std::byte> mine, std::span<std::byte> all,
                                std::span<const int64_t> sizes_bytes) {
  start_all_gather_v(mine, all, sizes_bytes).wait();
}

Request Communicator::start_all_to_all_v(const AllToAll& chunks) {
  const auto world = static_cast<size_t>(world_size_), self = static_cast<size_t>(rank_);
  ONEBIT_INVARIANT(chunks.send_bytes.size() == world && chunks.receive_bytes.size() == world);
  ONEBIT_INVARIANT(chunks.send_bytes[self] == chunks.receive_bytes[self]);
  Messages messages{.operation = "all_to_all",
                    .send = cut(chunks.send, chunks.send_bytes, "all_to_all"),
                    .receive = cut(chunks.receive, chunks.receive_bytes, "all_to_all")};
  const std::span<const std::byte> mine = std::exchange(messages.send[self], {});
  const std::span<std::byte> own = std::exchange(messages.receive[self], {});
  if (own.data() != mine.data() && !mine.empty()) {
    copy_own(own.data(), mine.data(), static_cast<int64_t>(mine.size()));
  }
  return start_counted(std::move(messages));
}

void Communicator::all_to_all_v(const AllToAll& chunks) {
  start_all_to_all_v(chunks).wait();
}

Request Communicator::start_broadcast(std::span<std::byte> bytes, int root) {
  ONEBIT_INVARIANT(root >= 0 && root < world_size_);
  const auto world = static_cast<size_t>(world_size_);
  Messages messages{.operation = "broadcast",
                    .send = std::vector<std::span<const std::byte>>(world),
                    .receive = std::vector<std::span<std::byte>>(world)};
  if (rank_ == root) {
    messages.send.assign(world, bytes);
    messages.send[static_cast<size_t>(rank_)] = {};
  } else {
    messages.receive[static_cast<size_t>(root)] = bytes;
  }
  return start_counted(std::move(messages));
}

void Communicator::broadcast(std::span<std::byte> bytes, int root) {
  start_broadcast(bytes, root).wait();
}

namespace {

// A barrier sends one byte to every other rank. Its buffers live as long as the request.
class BarrierState : public Request::State {
 public:
  explicit BarrierState(int world_size) : arrivals_(static_cast<size_t>(world_size)) {}
  std::span<std::byte> arrivals() { return arrivals_; }
  void set_request(Request request) { request_ = std::move(request); }
  bool test() override { return request_.test(); }
  void wait() override { request_.wait(); }

 private:
  std::vector<std::byte> arrivals_;
  Request request_;
};

}  // namespace

Request Communicator::start_barrier() {
  auto state = std::make_unique<BarrierState>(world_size_);
  const std::span<std::byte> arrivals = state->arrivals();
  state->set_request(start_all_gather(arrivals.subspan(static_cast<size_t>(rank_), 1), arrivals));
  return Request(std::move(state));
}

void Communicator::barrier() {
  start_barrier().wait();
}

void run_rank(Communicator& communicator, const std::function<void()>& work) {
  using Kind = RunEvent::Kind;
  const auto announce = [&communicator](const std::string& message, Kind kind = Kind::kFailed) {
    report_run_event({.kind = kind, .text = message});
    try {
      communicator.abort(message);
    } catch (const Error&) {  // the exception being handled is the one to throw
    }
  };
  try {
    work();
  } catch (const PeerError&) {
    throw;
  } catch (const NetworkError& error) {
    announce(error.what(), Kind::kFailedNetwork);
    throw;
  } catch (const std::exception& error) {
    announce(failure_text(error));
    throw;
  } catch (...) {
    announce("an exception of unknown type");
    throw;
  }
}

}  // namespace onebit::comm
