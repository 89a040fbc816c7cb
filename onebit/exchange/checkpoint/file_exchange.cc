#include "onebit/exchange/checkpoint/file_exchange.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/folder.h"
#include "onebit/ground/base/partial_file.h"

namespace onebit::checkpoint {
namespace {

// The files between this rank and another one, concatenated to one sequence of bytes.
struct Stream {
  std::vector<size_t> transfers;
  int64_t bytes = 0;
};

class FileExchange {
 public:
  FileExchange(comm::Communicator& communicator, std::span<const FileTransfer> transfers,
               int64_t chunk_bytes)
      : communicator_(communicator), transfers_(transfers), chunk_bytes_(chunk_bytes) {
    open_sources();
    int64_t longest = 0;
    std::map<std::pair<int, int>, int64_t> pairs;
    for (size_t i = 0; i < transfers.size(); ++i) {
      const FileTransfer& transfer = transfers[i];
      ONEBIT_INVARIANT(transfer.from != transfer.to);
      longest = std::max(longest, pairs[{transfer.from, transfer.to}] += sizes_[i]);
      if (transfer.from == communicator.rank()) add(to_[transfer.to], i);
      if (transfer.to == communicator.rank()) add(from_[transfer.from], i);
    }
    rounds_ = (longest + chunk_bytes - 1) / chunk_bytes;
  }

  void run() {
    for (int64_t round = 0; round < rounds_; ++round) exchange(round * chunk_bytes_);
    for (auto& [rank, stream] : from_) {
      for (const size_t index : stream.transfers) {
        try_to([&] { finish(index); });
      }
    }
    if (!error_.empty()) fail("{}", error_);
  }

 private:
  void try_to(const std::function<void()>& work) {
    if (!error_.empty()) return;
    try {
      work();
    } catch (const std::exception& error) {
      error_ = failure_text(error);
      writers_.clear();
    }
  }

  void open_sources() {
    sources_.resize(transfers_.size());
    sizes_.resize(transfers_.size());
    for (size_t i = 0; i < transfers_.size(); ++i) {
      if (transfers_[i].from != communicator_.rank()) continue;
      try_to([&] {
        sources_[i] = MappedFile(transfers_[i].source);
        sizes_[i] = static_cast<int64_t>(sources_[i].bytes().size());
      });
    }
    communicator_.all_reduce(std::span(sizes_), comm::Reduction::kSum);
  }

  void add(Stream& stream, size_t index) {
    stream.transfers.push_back(index);
    stream.bytes += sizes_[index];
  }

  int64_t part_of(const Stream& stream, int64_t begin) const {
    return std::clamp<int64_t>(stream.bytes - begin, 0, chunk_bytes_);
  }

  void exchange(int64_t begin) {
    const auto world = static_cast<size_t>(communicator_.world_size());
    std::vector<int64_t> send_bytes(world), receive_bytes(world);
    std::vector<std::byte> send, receive;
    for (const auto& [rank, stream] : to_) {
      send_bytes[static_cast<size_t>(rank)] = part_of(stream, begin);
      append(stream, begin, part_of(stream, begin), send);
    }
    int64_t received = 0;
    for (const auto& [rank, stream] : from_) {
      received += receive_bytes[static_cast<size_t>(rank)] = part_of(stream, begin);
    }
    receive.resize(static_cast<size_t>(received));
    communicator_.all_to_all_v({.send = send,
                                .send_bytes = send_bytes,
                                .receive = receive,
                                .receive_bytes = receive_bytes});
    std::span<const std::byte> left = receive;
    for (const auto& [rank, stream] : from_) {
      const auto part = static_cast<size_t>(part_of(stream, begin));
      try_to([&, &stream = stream] { write(stream, begin, left.first(part)); });
      left = left.subspan(part);
    }
  }

  // Calls `use` for each file's part of the `count` bytes from `begin` on, with the number of the
  // transfer, the offset in the file, the offset in these bytes and the number of bytes.
  template <typename Use>
  void for_files(const Stream& stream, int64_t begin, int64_t count, const Use& use) const {
    int64_t file_begin = 0;
    for (const size_t index : stream.transfers) {
      const int64_t file_end = file_begin + sizes_[index];
      const int64_t first = std::max(begin, file_begin), last = std::min(begin + count, file_end);
      if (first < last) use(index, first - file_begin, first - begin, last - first);
      file_begin = file_end;
    }
  }

  void append(const Stream& stream, int64_t begin, int64_t count, std::vector<std::byte>& to) {
    for_files(stream, begin, count, [&](size_t index, int64_t offset, int64_t, int64_t bytes) {
      const auto part =
          sources_[index].bytes().subspan(static_cast<size_t>(offset), static_cast<size_t>(bytes));
      to.insert(to.end(), part.begin(), part.end());
    });
  }

  void write(const Stream& stream, int64_t begin, std::span<const std::byte> from) {
    for_files(stream, begin, static_cast<int64_t>(from.size()),
              [&](size_t index, int64_t, int64_t at, int64_t bytes) {
                writer(index).write(from.data() + at, static_cast<size_t>(bytes));
              });
  }

  PartialFile& writer(size_t index) {
    std::unique_ptr<PartialFile>& writer = writers_[index];
    if (writer == nullptr) {
      make_folder(transfers_[index].target.parent_path());
      writer = std::make_unique<PartialFile>(transfers_[index].target);
    }
    return *writer;
  }

  void finish(size_t index) {
    PartialFile& file = writer(index);
    ONEBIT_INVARIANT(static_cast<int64_t>(file.size_bytes()) == sizes_[index]);
    file.finish();
  }

  comm::Communicator& communicator_;
  std::span<const FileTransfer> transfers_;
  int64_t chunk_bytes_, rounds_ = 0;
  std::vector<MappedFile> sources_;  // [transfers]: mapped for those from this rank
  std::vector<int64_t> sizes_;       // [transfers]
  std::map<int, Stream> to_, from_;  // by the other rank
  std::map<size_t, std::unique_ptr<PartialFile>> writers_;
  std::string error_;
};

}  // namespace

void exchange_files(comm::Communicator& communicator, std::span<const FileTransfer> transfers,
                    int64_t chunk_bytes) {
  if (transfers.empty()) return;
  FileExchange(communicator, transfers, chunk_bytes).run();
}

}  // namespace onebit::checkpoint
