// The functions of NCCL. A message is copied once both sides' streams have reached it.
#include <nccl.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/emulated_cuda/device_language.h"
#include "tests/emulated_cuda/requested_failure.h"
#include "tests/emulated_cuda/work.h"

namespace emulated_cuda {
namespace {

constexpr std::chrono::seconds kLongestStart{30};
// The first questions about a group of messages are always answered "in progress".
constexpr int kPollsBeforeStarted = 2;

using Clock = std::chrono::steady_clock;

struct Group;
using GroupRef = std::shared_ptr<Group>;

// One message. The pointers of a side are null until its rank has called.
struct Message {
  const void* from = nullptr;
  void* to = nullptr;
  size_t sent_bytes = 0, received_bytes = 0;
  GroupRef sender, receiver;
  bool moved = false;
};
using MessageRef = std::shared_ptr<Message>;

// The ranks that share a unique id.
struct World {
  int ranks = 0, joined = 0;
  std::vector<int> devices;
  bool duplicate = false, aborted = false;
  // Sends and receives between two ranks are matched in order.
  std::map<std::pair<int, int>, std::deque<MessageRef>> sent, received;
};

}  // namespace
}  // namespace emulated_cuda

struct ncclComm {
  std::shared_ptr<emulated_cuda::World> world;
  int rank = 0, device = 0;
  emulated_cuda::Clock::time_point latest_start;
  // A group that is not on its stream yet, as the calls of a communicator return at once.
  emulated_cuda::GroupRef pending;
  int polls = 0;
};

namespace emulated_cuda {
namespace {

// The messages of one rank between ncclGroupStart and ncclGroupEnd.
struct Group {
  ncclComm_t communicator = nullptr;
  std::shared_ptr<World> world;
  cudaStream_t stream = nullptr;
  std::vector<MessageRef> messages;
  WorkRef work;
  bool arrived = false;  // its stream has reached it

  bool run() {
    arrived = true;
    bool all = true;
    for (const MessageRef& message : messages) all = move(*message) && all;
    if (world->aborted) messages.clear();
    return all || world->aborted;
  }
  bool move(Message& message) const {
    if (message.moved) return true;
    if (message.sender == nullptr || message.receiver == nullptr) return false;
    Group& other = message.sender.get() == this ? *message.receiver : *message.sender;
    // A real device would reach the group on its own. The emulated one runs only when called.
    if (!other.arrived && other.work != nullptr) Machine::one().advance(other.work);
    if (message.moved) return true;
    if (!other.arrived) return false;
    if (message.sent_bytes != message.received_bytes) {
      fault("NCCL: a message is not as long as its receiver expects");
    }
    Machine::one().regions().open(-1);
    std::memcpy(message.to, message.from, message.sent_bytes);
    message.moved = true;
    Machine::one().announce();
    message.sender = message.receiver = nullptr;  // breaks the cycle of shared pointers
    return true;
  }
};

thread_local int group_depth = 0;
thread_local GroupRef open_group;
std::map<uint64_t, std::shared_ptr<World>> worlds;  // guarded by Machine's lock
uint64_t last_id = 0;

uint64_t number_of(const ncclUniqueId& id) {
  uint64_t number = 0;
  std::memcpy(&number, id.internal, sizeof number);
  return number;
}

// The message that the other side has already enqueued, or a new one that waits for it.
MessageRef meet(std::deque<MessageRef>& theirs, std::deque<MessageRef>& ours) {
  if (theirs.empty()) return ours.emplace_back(std::make_shared<Message>());
  MessageRef message = theirs.front();
  theirs.pop_front();
  return message;
}

GroupRef group_for(ncclComm_t communicator, cudaStream_t stream) {
  if (open_group == nullptr) {
    open_group = std::make_shared<Group>();
    open_group->communicator = communicator;
    open_group->world = communicator->world;
    open_group->stream = stream;
  }
  return open_group;
}

ncclResult_t check_call(ncclComm_t communicator, const void* data, size_t size_bytes, int peer,
                        cudaStream_t stream) {
  Machine& machine = Machine::one();
  const Region* const region = machine.regions().of(data);
  const World& world = *communicator->world;
  if (group_depth == 0 || peer < 0 || peer >= world.ranks) return ncclInvalidUsage;
  // The previous call is still in progress.
  if (world.joined < world.ranks || communicator->pending != nullptr) return ncclInvalidArgument;
  if (region == nullptr || region->device != communicator->device ||
      static_cast<const char*>(data) + size_bytes > region->begin + region->size_bytes ||
      machine.device_of(stream) != communicator->device) {
    return ncclInvalidArgument;
  }
  return ncclSuccess;
}

// The state of a communicator. Puts a group on its stream once it has been asked for often enough.
ncclResult_t state_of(ncclComm& communicator) {
  World& world = *communicator.world;
  if (world.aborted) return ncclRemoteError;
  if (world.joined < world.ranks) {
    return Clock::now() > communicator.latest_start ? ncclSystemError : ncclInProgress;
  }
  if (world.duplicate) return ncclInvalidUsage;  // "Duplicate GPU detected"
  if (communicator.pending == nullptr) return ncclSuccess;
  if (communicator.polls-- > 0) return ncclInProgress;
  const GroupRef group = std::exchange(communicator.pending, nullptr);
  group->work = Machine::one().append(group->stream, -1, [group] { return group->run(); });
  return ncclSuccess;
}

}  // namespace
}  // namespace emulated_cuda

using namespace emulated_cuda;

ncclResult_t ncclGetVersion(int* version) {
  if (is_to_fail("ncclGetVersion")) return ncclSystemError;
  *version = 22703;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (is_to_fail("ncclGetUniqueId")) return ncclSystemError;
  const auto lock = Machine::lock();
  *id = {};
  const uint64_t number = ++last_id;
  std::memcpy(id->internal, &number, sizeof number);
  return ncclSuccess;
}

// Returns at once. The state of the communicator says when all ranks have joined. Ranks of other
// processes can never join, and none does with ONEBIT_EMULATED_NCCL_CONNECTS=0.
ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (is_to_fail("ncclCommInitRankConfig")) return ncclSystemError;
  if (config->blocking != 0) fault("the emulated NCCL does not block: set blocking to 0");
  const auto lock = Machine::lock();
  std::shared_ptr<World>& place = worlds[number_of(id)];
  if (place == nullptr) place = std::make_shared<World>();
  const std::shared_ptr<World> world = place;
  world->ranks = ranks;
  for (const int device : world->devices) world->duplicate |= device == current_device();
  world->devices.push_back(current_device());
  const char* const connects = std::getenv("ONEBIT_EMULATED_NCCL_CONNECTS");
  if (connects == nullptr || std::string_view(connects) != "0") ++world->joined;
  Machine::one().announce();
  *communicator = new ncclComm{world, rank, current_device(), Clock::now() + kLongestStart, {}, 0};
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  const auto lock = Machine::lock();
  delete communicator;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  const auto lock = Machine::lock();
  communicator->world->aborted = true;
  communicator->world->sent.clear();  // these are never received
  communicator->world->received.clear();
  Machine::one().announce();
  delete communicator;
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* error) {
  if (is_to_fail("ncclCommGetAsyncError")) return ncclSystemError;
  const auto lock = Machine::lock();
  *error = state_of(*communicator);
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++group_depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group_depth == 0) return ncclInvalidUsage;
  if (--group_depth > 0) return ncclSuccess;
  const GroupRef group = std::exchange(open_group, nullptr);
  if (is_to_fail("ncclGroupEnd")) return ncclSystemError;
  if (group == nullptr) return ncclSuccess;
  const auto lock = Machine::lock();
  group->communicator->pending = group;
  group->communicator->polls = kPollsBeforeStarted;
  return ncclInProgress;
}

ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
  if (is_to_fail("ncclSend")) return ncclSystemError;
  const auto lock = Machine::lock();
  const ncclResult_t status = check_call(communicator, data, count, peer, stream);
  if (status != ncclSuccess) return status;
  World& world = *communicator->world;
  const std::pair<int, int> way{communicator->rank, peer};
  const MessageRef message = meet(world.received[way], world.sent[way]);
  const GroupRef group = group_for(communicator, stream);
  message->from = data;
  message->sent_bytes = count;
  message->sender = group;
  group->messages.push_back(message);
  return ncclSuccess;
}

ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
  if (is_to_fail("ncclRecv")) return ncclSystemError;
  const auto lock = Machine::lock();
  const ncclResult_t status = check_call(communicator, data, count, peer, stream);
  if (status != ncclSuccess) return status;
  World& world = *communicator->world;
  const std::pair<int, int> way{peer, communicator->rank};
  const MessageRef message = meet(world.sent[way], world.received[way]);
  const GroupRef group = group_for(communicator, stream);
  message->to = data;
  message->received_bytes = count;
  message->receiver = group;
  group->messages.push_back(message);
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t error) {
  return error == ncclSuccess ? "no error" : "an error of the emulated NCCL";
}
const char* ncclGetLastError(ncclComm_t) {
  return "";
}
