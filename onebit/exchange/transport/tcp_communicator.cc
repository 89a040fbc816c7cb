#include "onebit/exchange/transport/tcp_communicator.h"

#include <filesystem>
#include <iterator>
#include <numeric>
#include <utility>

#include "onebit/exchange/transport/tcp_mesh.h"
#include "onebit/exchange/transport/tcp_rendezvous.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/machine.h"

namespace onebit::transport {
namespace {

class TcpState : public comm::Request::State {
 public:
  TcpState(std::shared_ptr<TcpMesh> mesh, std::shared_ptr<TcpTransfer> transfer,
           std::shared_ptr<std::atomic<bool>> interrupted)
      : mesh_(std::move(mesh)),
        transfer_(std::move(transfer)),
        interrupted_(std::move(interrupted)) {}
  ~TcpState() override {
    if (transfer_->left > 0) mesh_->withdraw(*transfer_);
  }

  bool test() override { return mesh_->status().test(*transfer_, *interrupted_); }
  void wait() override { mesh_->status().wait(*transfer_, *interrupted_); }

 private:
  std::shared_ptr<TcpMesh> mesh_;
  std::shared_ptr<TcpTransfer> transfer_;
  std::shared_ptr<std::atomic<bool>> interrupted_;
};

// The number of the `made`-th communicator that each rank of one color makes out of `parent`: the
// same on all of them, and practically no other's (the finaliser of splitmix64).
uint64_t channel_of(uint64_t parent, uint64_t made, int color) {
  uint64_t bits = parent;
  for (const uint64_t part : {made, static_cast<uint64_t>(color + 1)}) {
    bits += part + 0x9e3779b97f4a7c15;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
    bits ^= bits >> 31;
  }
  return bits;
}

class TcpCommunicator : public comm::Communicator {
 public:
  // `members` are the world ranks of the group, and this rank is members[rank].
  TcpCommunicator(std::shared_ptr<TcpMesh> mesh, std::vector<int> members, int rank, int local_rank,
                  uint64_t channel)
      : comm::Communicator(rank, static_cast<int>(members.size()), local_rank),
        mesh_(std::move(mesh)),
        members_(std::move(members)),
        channel_(channel) {}

  std::string_view transport() const override { return "tcp"; }

  [[noreturn]] void abort(const std::string& message) override {
    mesh_->fail_own(message);
    throw Error(message);
  }
  void check_peers() const override { mesh_->status().check_peers(); }
  void interrupt() override {
    *interrupted_ = true;
    mesh_->status().wake();
  }
  void leave() override { mesh_->leave(); }

 protected:
  std::unique_ptr<comm::Communicator> make_duplicate() override {
    return std::make_unique<TcpCommunicator>(mesh_, members_, rank(), local_rank(),
                                             channel_of(channel_, made_++, kNoColor));
  }
  std::unique_ptr<comm::Communicator> make_split(int color,
                                                 const std::vector<int>& ranks) override {
    std::vector<int> members;
    int own = 0;
    for (const int one : ranks) {
      if (one == rank()) own = static_cast<int>(members.size());
      members.push_back(members_[static_cast<size_t>(one)]);
    }
    return std::make_unique<TcpCommunicator>(mesh_, std::move(members), own, local_rank(),
                                             channel_of(channel_, made_++, color));
  }

  std::unique_ptr<comm::Request::State> start(Messages messages) override {
    require(!mesh_->has_left(), "rank {} has left its group: it cannot call {}", rank(),
            messages.operation);
    auto transfer = std::make_shared<TcpTransfer>();
    transfer->operation = messages.operation;
    const int ranks = world_size();
    for (size_t peer = 0; peer < messages.send.size(); ++peer) {
      transfer->left += (messages.send[peer].empty() ? 0 : 1);
      transfer->left += (messages.receive[peer].empty() ? 0 : 1);
    }
    const TcpKey key{.channel = channel_, .sequence = sequence_++};
    // Each rank begins with the one after it: one that all began with would get everything at once.
    for (int step = 1; step < ranks; ++step) {
      const auto peer = static_cast<size_t>((rank() + step) % ranks);
      if (messages.send[peer].empty() && messages.receive[peer].empty()) continue;
      mesh_->connection(members_[peer])
          .post(key, transfer, messages.send[peer], messages.receive[peer]);
    }
    return std::make_unique<TcpState>(mesh_, std::move(transfer), interrupted_);
  }

 private:
  static constexpr int kNoColor = -1;

  std::shared_ptr<TcpMesh> mesh_;
  std::vector<int> members_;
  uint64_t channel_, sequence_ = 0, made_ = 0;
  std::shared_ptr<std::atomic<bool>> interrupted_ = std::make_shared<std::atomic<bool>>(false);
};

// Enough for a connection to every other rank, and for the files that are open or will be.
void raise_open_files_of(int world_size) {
  constexpr int64_t kOwn = 256;
  std::error_code unknown;
  const std::filesystem::directory_iterator open("/proc/self/fd", unknown), end;
  raise_open_files(std::distance(open, end) + world_size + kOwn);
}

}  // namespace

std::unique_ptr<comm::Communicator> make_tcp_world(const TcpOptions& options) {
  raise_open_files_of(options.world_size);
  TcpWorld found = meet(options);
  std::vector<int> members(found.peers.size());
  std::iota(members.begin(), members.end(), 0);
  auto world = std::make_unique<TcpCommunicator>(
      std::make_shared<TcpMesh>(options.rank, std::move(found.peers)), std::move(members),
      options.rank, found.local_rank, 0);
  world->set_nodes(comm::Nodes(found.node_of_rank));
  return world;
}

}  // namespace onebit::transport
