#include "onebit/exchange/comm/thread_communicator.h"

#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>
#include <tuple>
#include <utility>

namespace onebit::comm {
namespace {

// One collective from its first post to its last copy. For every pair of ranks, the one that posts
// later copies in both directions, so a transfer proceeds without a wait, and waits may come in any
// order.
struct Collective {
  struct Post {
    std::vector<std::span<const std::byte>> send;
    std::vector<std::span<std::byte>> receive;
    bool posted = false;
    bool withdrawn = false;  // its buffers no longer exist
    int pairs_left = 0;
    int copies_under_way = 0;  // that access its buffers
  };

  explicit Collective(const std::vector<int>& ranks) : members(ranks), posts(ranks.size()) {}

  int size() const { return static_cast<int>(members.size()); }

  std::vector<int> members;  // their world ranks. Other rank numbers here index this list
  std::string operation;
  int posted = 0;
  std::vector<Post> posts;
};

void copy_message(std::span<const std::byte> from, std::span<std::byte> to) {
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

}  // namespace

// The state shared by the ranks of one world, their duplicates and splits, under one mutex.
class ThreadGroup {
 public:
  explicit ThreadGroup(int world_size) : left_(static_cast<size_t>(world_size), false) {}

  // The channel of all ranks of one color when each makes its `number`-th communicator out of
  // `parent`.
  int64_t channel_of(int64_t parent, int64_t number, int color) {
    const std::lock_guard lock(mutex_);
    const auto [place, fresh] = channels_.try_emplace({parent, number, color}, next_channel_);
    if (fresh) ++next_channel_;
    return place->second;
  }

  void set_failure(int rank, const std::string& message) {
    const std::lock_guard lock(mutex_);
    if (failed_rank_ < 0) {
      failed_rank_ = rank;
      failed_message_ = message;
    }
    changed_.notify_all();
  }
  int failed_rank() {
    const std::lock_guard lock(mutex_);
    return failed_rank_;
  }
  void check_others(int rank) {
    const std::lock_guard lock(mutex_);
    if (failed_rank_ >= 0 && failed_rank_ != rank) throw PeerError(failed_rank_, failed_message_);
  }
  // This rank has returned: no other rank may wait for it any longer.
  void leave(int rank) {
    const std::lock_guard lock(mutex_);
    left_[static_cast<size_t>(rank)] = true;
    changed_.notify_all();
  }
  void wake() {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }

  std::shared_ptr<Collective> post(int64_t channel, int64_t sequence,
                                   const std::vector<int>& members, int rank,
                                   std::string_view operation, Collective::Post post);
  bool test(Collective& collective, int rank, const std::atomic<bool>& interrupted);
  void wait(Collective& collective, int rank, const std::atomic<bool>& interrupted);
  // Returns when no other rank accesses this rank's buffers any more.
  void withdraw(Collective& collective, int rank);

 private:
  void check_pair(const Collective& collective, int one, int other) const;
  bool finished_or_throw(const Collective& collective, int rank,
                         const std::atomic<bool>& interrupted) const;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int64_t, int64_t>, std::shared_ptr<Collective>> collectives_;
  std::map<std::tuple<int64_t, int64_t, int>, int64_t> channels_;
  int64_t next_channel_ = 1;
  std::vector<bool> left_;
  int failed_rank_ = -1;
  std::string failed_message_;
};

void ThreadGroup::check_pair(const Collective& collective, int one, int other) const {
  const auto check = [&](int from, int to) {
    const size_t sent =
        collective.posts[static_cast<size_t>(from)].send[static_cast<size_t>(to)].size();
    const size_t expected =
        collective.posts[static_cast<size_t>(to)].receive[static_cast<size_t>(from)].size();
    require(sent == expected, "{}: rank {} sends {} bytes to rank {}, which expects {}",
            collective.operation, from, sent, to, expected);
  };
  check(one, other);
  check(other, one);
}

std::shared_ptr<Collective> ThreadGroup::post(int64_t channel, int64_t sequence,
                                              const std::vector<int>& members, int rank,
                                              std::string_view operation, Collective::Post post) {
  std::unique_lock lock(mutex_);
  auto& place = collectives_[{channel, sequence}];
  if (place == nullptr) {
    place = std::make_shared<Collective>(members);
    place->operation = operation;
  }
  const std::shared_ptr<Collective> collective = place;
  require(collective->operation == operation,
          "the ranks disagree on the next operation: rank {} calls {}, another rank calls {}", rank,
          operation, collective->operation);
  Collective::Post& mine = collective->posts[static_cast<size_t>(rank)];
  mine = std::move(post);
  std::vector<int> peers;
  const int ranks = collective->size();
  for (int peer = 0; peer < ranks; ++peer) {
    Collective::Post& other = collective->posts[static_cast<size_t>(peer)];
    if (peer == rank || !other.posted || other.withdrawn) continue;
    check_pair(*collective, rank, peer);
    peers.push_back(peer);
  }
  // The post is published only now: later ranks must not find one with mismatched sizes.
  mine.posted = true;
  mine.pairs_left = ranks - 1;
  for (const int peer : peers) ++collective->posts[static_cast<size_t>(peer)].copies_under_way;
  mine.copies_under_way = static_cast<int>(peers.size());
  if (++collective->posted == ranks) collectives_.erase({channel, sequence});

  for (const int peer : peers) {
    Collective::Post& other = collective->posts[static_cast<size_t>(peer)];
    lock.unlock();
    copy_message(other.send[static_cast<size_t>(rank)], mine.receive[static_cast<size_t>(peer)]);
    copy_message(mine.send[static_cast<size_t>(peer)], other.receive[static_cast<size_t>(rank)]);
    lock.lock();
    --other.copies_under_way;
    --other.pairs_left;
    --mine.copies_under_way;
    --mine.pairs_left;
    changed_.notify_all();
  }
  return collective;
}

bool ThreadGroup::finished_or_throw(const Collective& collective, int rank,
                                    const std::atomic<bool>& interrupted) const {
  if (collective.posts[static_cast<size_t>(rank)].pairs_left == 0) return true;
  if (failed_rank_ >= 0) throw PeerError(failed_rank_, failed_message_);
  require(!interrupted, "rank {}: interrupted in {}", rank, collective.operation);
  for (int at = 0; at < collective.size(); ++at) {
    const int peer = collective.members[static_cast<size_t>(at)];
    if (left_[static_cast<size_t>(peer)] && !collective.posts[static_cast<size_t>(at)].posted) {
      throw PeerError(peer, fmt::format("it ended while rank {} waited for it in {}", rank,
                                        collective.operation));
    }
  }
  return false;
}

bool ThreadGroup::test(Collective& collective, int rank, const std::atomic<bool>& interrupted) {
  const std::lock_guard lock(mutex_);
  return finished_or_throw(collective, rank, interrupted);
}

void ThreadGroup::wait(Collective& collective, int rank, const std::atomic<bool>& interrupted) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return finished_or_throw(collective, rank, interrupted); });
}

void ThreadGroup::withdraw(Collective& collective, int rank) {
  std::unique_lock lock(mutex_);
  Collective::Post& mine = collective.posts[static_cast<size_t>(rank)];
  mine.withdrawn = true;
  changed_.wait(lock, [&] { return mine.copies_under_way == 0; });
}

namespace {

class ThreadState : public Request::State {
 public:
  ThreadState(std::shared_ptr<ThreadGroup> group, std::shared_ptr<Collective> collective, int rank,
              std::shared_ptr<std::atomic<bool>> interrupted)
      : group_(std::move(group)),
        collective_(std::move(collective)),
        rank_(rank),
        interrupted_(std::move(interrupted)) {}
  ~ThreadState() override { group_->withdraw(*collective_, rank_); }

  bool test() override { return group_->test(*collective_, rank_, *interrupted_); }
  void wait() override { group_->wait(*collective_, rank_, *interrupted_); }

 private:
  std::shared_ptr<ThreadGroup> group_;
  std::shared_ptr<Collective> collective_;
  int rank_;
  std::shared_ptr<std::atomic<bool>> interrupted_;
};

class ThreadCommunicator : public Communicator {
 public:
  // `members`: the world ranks of the group. This rank is members[rank].
  ThreadCommunicator(std::shared_ptr<ThreadGroup> group, std::vector<int> members, int rank,
                     int64_t channel)
      : Communicator(rank, static_cast<int>(members.size()), members[static_cast<size_t>(rank)]),
        group_(std::move(group)),
        members_(std::move(members)),
        channel_(channel) {}

  std::string_view transport() const override { return "threads"; }

  [[noreturn]] void abort(const std::string& message) override {
    group_->set_failure(members_[static_cast<size_t>(rank())], message);
    throw Error(message);
  }

  void check_peers() const override { group_->check_others(members_[static_cast<size_t>(rank())]); }
  void interrupt() override {
    *interrupted_ = true;
    group_->wake();
  }

 protected:
  std::unique_ptr<Communicator> make_duplicate() override {
    return std::make_unique<ThreadCommunicator>(group_, members_, rank(), next_channel(kNoColor));
  }
  std::unique_ptr<Communicator> make_split(int color, const std::vector<int>& ranks) override {
    std::vector<int> members;
    int own = 0;
    for (const int one : ranks) {
      if (one == rank()) own = static_cast<int>(members.size());
      members.push_back(members_[static_cast<size_t>(one)]);
    }
    return std::make_unique<ThreadCommunicator>(group_, std::move(members), own,
                                                next_channel(color));
  }
  std::unique_ptr<Request::State> start(Messages messages) override {
    Collective::Post post;
    post.send = std::move(messages.send);
    post.receive = std::move(messages.receive);
    auto collective =
        group_->post(channel_, sequence_++, members_, rank(), messages.operation, std::move(post));
    return std::make_unique<ThreadState>(group_, std::move(collective), rank(), interrupted_);
  }

 private:
  static constexpr int kNoColor = -1;
  int64_t next_channel(int color) { return group_->channel_of(channel_, made_++, color); }

  std::shared_ptr<ThreadGroup> group_;
  std::vector<int> members_;
  int64_t channel_, sequence_ = 0, made_ = 0;
  std::shared_ptr<std::atomic<bool>> interrupted_ = std::make_shared<std::atomic<bool>>(false);
};

std::vector<int> ranks_below(int world_size) {
  std::vector<int> ranks(static_cast<size_t>(world_size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_thread_world(int world_size) {
  require(world_size >= 1, "a world needs at least one rank, but {} were requested", world_size);
  const auto group = std::make_shared<ThreadGroup>(world_size);
  std::vector<std::unique_ptr<Communicator>> ranks;
  for (int rank = 0; rank < world_size; ++rank) {
    ranks.push_back(std::make_unique<ThreadCommunicator>(group, ranks_below(world_size), rank, 0));
  }
  return ranks;
}

std::unique_ptr<Communicator> make_single_rank() {
  return std::move(make_thread_world(1).front());
}

void run_thread_world(int world_size, const std::function<void(Communicator&)>& work) {
  const auto group = std::make_shared<ThreadGroup>(world_size);
  std::vector<std::exception_ptr> errors(static_cast<size_t>(world_size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world_size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        ThreadCommunicator communicator(group, ranks_below(world_size), rank, 0);
        run_rank(communicator, [&] { work(communicator); });
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
      }
      group->leave(rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const int failed = group->failed_rank();
  if (failed >= 0 && errors[static_cast<size_t>(failed)]) {
    std::rethrow_exception(errors[static_cast<size_t>(failed)]);
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace onebit::comm
