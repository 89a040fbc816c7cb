// Communication between ranks. A Communicator is one rank's end of one group. Every rank of the
// group calls the same collectives in the same order (for each communicator, whichever thread makes
// the call). Transports: threads of one process (thread_communicator.h), MPI (mpi_communicator.h),
// and for buffers on CUDA devices the transports of device_communicator.h.
//
// Errors. When a rank fails it calls abort() (run_rank() does so for every exception). From then on
// every blocked or later call of another rank throws PeerError with the failed rank and its
// message. Under MPI, processes that do not notice are ended within seconds. No rank keeps waiting.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onebit/exchange/comm/nodes.h"
#include "onebit/ground/base/error.h"
#include "onebit/math/device/device.h"

namespace onebit::comm {

// Thrown on a rank when another one failed.
class PeerError : public Error {
 public:
  PeerError(int failed_rank, const std::string& failed_message);
  int failed_rank() const { return failed_rank_; }

 private:
  int failed_rank_;
};

// Thrown when a transfer failed for a reason outside of the program. A retry may succeed.
class NetworkError : public Error {
 public:
  using Error::Error;
};

enum class Reduction { kSum, kMax, kMin };

// A collective in progress. The buffers passed to it must live, untouched, until wait() has
// returned (or the Request is destroyed, which abandons the collective, for unwinding from an error
// only). Requests may be waited for in any order.
class Request {
 public:
  class State {
   public:
    virtual ~State() = default;
    // Advances the transfer, and returns whether it is complete. May throw PeerError. wait() always
    // does after a failure.
    virtual bool test() = 0;
    virtual void wait() = 0;
  };

  Request() = default;  // complete
  explicit Request(std::unique_ptr<State> state) : state_(std::move(state)) {}

  // Never blocks. Transports without a thread of their own advance only inside test() and wait().
  bool test();
  // Returns when received data may be read and sent data may be overwritten.
  void wait();

 private:
  std::unique_ptr<State> state_;
};

// One message from every rank to every rank: `send` is the concatenation of one message per rank,
// in rank order, of send_bytes[r] bytes, and `receive` likewise. The message that rank r sends to
// this rank must have the length that this rank expects.
struct AllToAll {
  std::span<const std::byte> send;
  std::span<const int64_t> send_bytes;
  std::span<std::byte> receive;
  std::span<const int64_t> receive_bytes;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int rank() const { return rank_; }
  int world_size() const { return world_size_; }
  // The number of this rank among the ranks on the same machine.
  int local_rank() const { return local_rank_; }
  // The nodes of the ranks according to the transport: a single one for threads.
  const Nodes& nodes() const { return nodes_; }
  // Replaces the nodes, also for later duplicates and splits. They must be the same on every rank.
  void set_nodes(Nodes nodes);
  // The device of the buffers that are passed to this communicator.
  virtual Device device() const { return {}; }
  virtual std::string_view transport() const = 0;  // "threads", "mpi", ...

  // Every rank ends with the same bits: the values of all ranks combined in rank order. For small
  // agreements (norms, flags, counts), as each rank sends all its values to every other. Long f32
  // buffers are averaged by dense_exchange.h, summed by collectives.h. kMax, kMin of NaN are NaN.
  void all_reduce(std::span<float> values, Reduction reduction);
  void all_reduce(std::span<double> values, Reduction reduction);
  void all_reduce(std::span<int64_t> values, Reduction reduction);
  Request start_all_reduce(std::span<float> values, Reduction reduction);
  Request start_all_reduce(std::span<double> values, Reduction reduction);
  Request start_all_reduce(std::span<int64_t> values, Reduction reduction);

  // Every rank ends with the contributions of all ranks in rank order. all_gather: all have the
  // same length. all_gather_v: rank r contributes sizes_bytes[r] bytes (the same list on all
  // ranks). `mine` may be its place inside `all`.
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all);
  Request start_all_gather(std::span<const std::byte> mine, std::span<std::byte> all);
  void all_gather_v(std::span<const std::byte> mine, std::span<std::byte> all,
                    std::span<const int64_t> sizes_bytes);
  Request start_all_gather_v(std::span<const std::byte> mine, std::span<std::byte> all,
                             std::span<const int64_t> sizes_bytes);

  // Rank r ends with the messages of every rank for r, in rank order. A rank's message to itself
  // may be in place already.
  void all_to_all_v(const AllToAll& chunks);
  Request start_all_to_all_v(const AllToAll& chunks);

  // Every rank ends with a copy of the bytes of `root`, which sends all of them to each rank (for
  // long buffers see collectives.h).
  void broadcast(std::span<std::byte> bytes, int root);
  Request start_broadcast(std::span<std::byte> bytes, int root);

  // Returns when every rank has called it.
  void barrier();
  Request start_barrier();

  // The same ranks on an independent communicator, for another thread. Collective.
  std::unique_ptr<Communicator> duplicate();
  // The ranks that pass the same `color` (0 or more), in rank order, on an independent
  // communicator. Collective over all ranks of this one.
  std::unique_ptr<Communicator> split(int color);

  // Ends all ranks with this message. Threads: marks the world as failed, wakes all ranks and
  // throws Error. MPI: prints, notifies the other ranks and ends the job, without a return. If
  // another rank has failed before, its message is kept.
  [[noreturn]] virtual void abort(const std::string& message) = 0;
  // Throws PeerError if another rank has failed. Processes are ended instead.
  virtual void check_peers() const {}
  // Makes blocked and later calls of this rank on this communicator throw. From any thread.
  virtual void interrupt() = 0;
  // Further calls of this process throw, and for the others it has ended. Threads: no effect.
  virtual void leave() {}

  // Bytes that this rank has passed to the transport for other ranks through this communicator
  // (duplicates count separately). May be read from any thread.
  int64_t wire_bytes_sent() const { return wire_bytes_sent_.load(std::memory_order_relaxed); }
  // The part of the bytes sent that went to this rank's own node. Duplicates and splits count here
  // as well.
  int64_t bytes_sent_inside_node() const { return inside_node_->load(std::memory_order_relaxed); }
  // From now on counts them in a counter of its own, not in the original communicator's.
  void count_inside_node_separately() { inside_node_ = std::make_shared<std::atomic<int64_t>>(0); }

 protected:
  Communicator(int rank, int world_size, int local_rank)
      : rank_(rank),
        world_size_(world_size),
        local_rank_(local_rank),
        nodes_(Nodes::one(world_size)) {}

  virtual std::unique_ptr<Communicator> make_duplicate() = 0;
  // `members`: the ranks that passed `color`, in ascending order.
  virtual std::unique_ptr<Communicator> make_split(int color, const std::vector<int>& members) = 0;

  // One message to and from every other rank. Empty ones are not sent. This rank's own are empty.
  struct Messages {
    std::string_view operation;  // for errors
    std::vector<std::span<const std::byte>> send;
    std::vector<std::span<std::byte>> receive;
  };
  // The only operation that a transport must implement.
  virtual std::unique_ptr<Request::State> start(Messages messages) = 0;
  // For transports that are built on another one.
  static std::unique_ptr<Request::State> start_on(Communicator& other, Messages messages) {
    return other.start(std::move(messages));
  }
  // Copies a rank's message to itself.
  virtual void copy_own(std::byte* to, const std::byte* from, int64_t size_bytes);

 private:
  Request start_counted(Messages messages);
  template <typename T>
  Request reduce(std::span<T> values, Reduction reduction);

  int rank_, world_size_, local_rank_;
  Nodes nodes_;
  std::atomic<int64_t> wire_bytes_sent_{0};
  std::shared_ptr<std::atomic<int64_t>> inside_node_ = std::make_shared<std::atomic<int64_t>>(0);
};

// Runs one rank's work. An exception that leaves it aborts all ranks with its message.
void run_rank(Communicator& communicator, const std::function<void()>& work);

}  // namespace onebit::comm
