#include "onebit/exchange/checkpoint/disks.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <span>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/machine.h"
#include "onebit/ground/base/run_files.h"

namespace onebit::checkpoint {
namespace {

namespace files = std::filesystem;

constexpr size_t kHostBytes = 64;

// What a rank reports about itself.
struct Introduction {
  uint64_t token = 0;
  int64_t made_folders = 0;
  int64_t milliseconds = 0;  // since 1970
  std::array<char, kHostBytes> host{};
};

Path token_path(const Path& folder, uint64_t token) {
  return folder / fmt::format("{}{:016x}", run_files::kDiskToken, token);
}

// A file that exists as long as the object.
class Token {
 public:
  explicit Token(Path path) : path_(std::move(path)) { FileWriter(path_).finish(); }
  ~Token() { remove(); }
  Token(const Token&) = delete;
  Token& operator=(const Token&) = delete;
  void remove() {
    std::error_code ignored;
    files::remove(path_, ignored);
  }

 private:
  Path path_;
};

// Creates a folder with its parents and counts those that did not exist.
int64_t make_and_count(const Path& folder) {
  int64_t made = 0;
  Path path;
  for (const Path& part : files::absolute(folder).lexically_normal()) {
    path /= part;
    std::error_code error;
    const bool is_new = files::create_directory(path, error);
    if (is_new) ++made;
    require(!error || files::is_directory(path), "{}: cannot be created: {}", path.string(),
            error.message());
  }
  return made;
}

// Removes the last `count` folders of a path if they are empty.
void remove_empty(const Path& folder, int64_t count) {
  Path path = files::absolute(folder).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  for (; count > 0 && ::rmdir(path.c_str()) == 0; --count) path = path.parent_path();
}

Introduction introduction(uint64_t token, int64_t made_folders) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  Introduction mine{
      .token = token,
      .made_folders = made_folders,
      .milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(now).count()};
  const std::string host = host_name().substr(0, kHostBytes - 1);
  std::copy(host.begin(), host.end(), mine.host.begin());
  return mine;
}

std::string start_of(const Introduction& first) {
  return fmt::format("{:012x}-{:016x}", first.milliseconds, first.token);
}

// For each rank the lowest one on the same disk. Two ranks share a disk if either finds the other's
// file: the delay of a network file system must not split one disk into two.
std::vector<int> lowest_neighbours(comm::Communicator& communicator, const Path& folder,
                                   std::span<const Introduction> ranks) {
  const size_t world = ranks.size();
  std::vector<uint8_t> mine(world), seen(world * world);
  for (size_t rank = 0; rank < world; ++rank) {
    mine[rank] = files::exists(token_path(folder, ranks[rank].token)) ? 1 : 0;
  }
  communicator.all_gather(std::as_bytes(std::span<const uint8_t>(mine)),
                          std::as_writable_bytes(std::span(seen)));
  std::vector<int> lowest(world);
  std::iota(lowest.begin(), lowest.end(), 0);
  for (size_t rank = 0; rank < world; ++rank) {
    for (size_t other = 0; other < world; ++other) {
      if (seen[rank * world + other] == 0 || lowest[rank] == lowest[other]) continue;
      const auto [low, high] = std::minmax(lowest[rank], lowest[other]);
      std::replace(lowest.begin(), lowest.end(), int{high}, int{low});
    }
  }
  return lowest;
}

// "node-b"; "node-b, disk 1" if one host has several disks.
std::vector<std::string> disk_names(const comm::Nodes& disks, std::span<const Introduction> ranks) {
  std::vector<std::string> hosts;
  for (int disk = 0; disk < disks.count(); ++disk) {
    hosts.emplace_back(ranks[static_cast<size_t>(disks.ranks_of(disk).front())].host.data());
  }
  std::vector<std::string> names;
  for (size_t disk = 0; disk < hosts.size(); ++disk) {
    const bool alone = std::count(hosts.begin(), hosts.end(), hosts[disk]) == 1;
    names.push_back(alone ? hosts[disk] : fmt::format("{}, disk {}", hosts[disk], disk));
  }
  return names;
}

}  // namespace

std::vector<int> Disks::keepers_of(int rank, int64_t copies) const {
  std::vector<int> keepers;
  for (int copy = 0; copy < copies && copy < count(); ++copy) {
    keepers.push_back((disk_of(rank) + copy) % count());
  }
  return keepers;
}

int Disks::shards_on(int disk, int64_t copies) const {
  int held = 0;
  for (int rank = 0; rank < ranks.ranks(); ++rank) {
    const std::vector<int> keepers = keepers_of(rank, copies);
    held += std::find(keepers.begin(), keepers.end(), disk) != keepers.end() ? 1 : 0;
  }
  return held;
}

std::string Disks::on(size_t disk, const std::string& text) const {
  return count() == 1 ? text : fmt::format("{}: {}", names[disk], text);
}

Disks find_disks(comm::Communicator& communicator, const Path& folder) {
  const uint64_t token = random_id();
  const auto world = static_cast<size_t>(communicator.world_size());
  std::vector<Introduction> ranks(world);
  if (world == 1) {
    ranks[0] = introduction(token, 0);
    const comm::Nodes one = comm::Nodes::one(1);
    return {.ranks = one, .names = disk_names(one, ranks), .start = start_of(ranks[0])};
  }
  const int64_t made = make_and_count(folder);
  Disks disks;
  bool is_new = false;
  try {
    Token file(token_path(folder, token));
    const Introduction mine = introduction(token, made);
    communicator.all_gather(std::as_bytes(std::span(&mine, 1)),
                            std::as_writable_bytes(std::span(ranks)));
    disks.ranks = comm::Nodes(lowest_neighbours(communicator, folder, ranks));
    is_new = std::any_of(ranks.begin(), ranks.end(),
                         [](const Introduction& rank) { return rank.made_folders > 0; });
  } catch (...) {
    remove_empty(folder, made);
    throw;
  }
  disks.names = disk_names(disks.ranks, ranks);
  disks.start = start_of(ranks[0]);
  if (is_new) {
    communicator.barrier();  // all files have been removed
    const int own = disks.disk_of(communicator.rank());
    int64_t made_on_disk = 0;  // one rank may have created parents, another one the folder
    for (const int rank : disks.ranks.ranks_of(own)) {
      made_on_disk += ranks[static_cast<size_t>(rank)].made_folders;
    }
    if (disks.leads(communicator.rank())) remove_empty(folder, made_on_disk);
    communicator.barrier();  // no rank writes to the folder before this
  }
  return disks;
}

}  // namespace onebit::checkpoint
