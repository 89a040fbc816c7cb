#include <archive.h>
#include <zlib.h>

#include <cerrno>
#include <exception>
#include <utility>
#include <vector>

#include "onebit/data/corpus/byte_stream.h"
#include "onebit/ground/base/error.h"

namespace onebit::corpus {

namespace {

constexpr size_t kPackedBytes = size_t{256} << 10;

struct Filter {
  int code;
  int (*support)(archive*);
};

Filter filter_of(Packing packing) {
  switch (packing) {
    case Packing::kXz:
      return {ARCHIVE_FILTER_XZ, archive_read_support_filter_xz};
    case Packing::kZstd:
      return {ARCHIVE_FILTER_ZSTD, archive_read_support_filter_zstd};
    case Packing::kBzip2:
      return {ARCHIVE_FILTER_BZIP2, archive_read_support_filter_bzip2};
    case Packing::kLz4:
      return {ARCHIVE_FILTER_LZ4, archive_read_support_filter_lz4};
    case Packing::kNone:
    case Packing::kGzip:
      break;
  }
  ONEBIT_INVARIANT(false);
  return {};
}

// libarchive with one filter and no archive format, which returns the plain bytes.
class FilterStream : public ByteStream {
 public:
  FilterStream(std::unique_ptr<ByteStream> packed, Packing packing, std::string name)
      : packed_(std::move(packed)),
        packing_(packing),
        name_(std::move(name)),
        buffer_(kPackedBytes),
        reader_(archive_read_new(), archive_read_free) {
    require(reader_ != nullptr, "{}: out of memory while decompressing {}", name_,
            onebit::corpus::name(packing));
    const Filter filter = filter_of(packing);
    // With the format set, libarchive does not guess one from the unpacked bytes (any text).
    const bool ready = filter.support(reader_.get()) == ARCHIVE_OK &&
                       archive_read_set_format(reader_.get(), ARCHIVE_FORMAT_RAW) == ARCHIVE_OK;
    require(ready, "{}: the installed libarchive does not support {}: {}", name_,
            onebit::corpus::name(packing), reason());
    archive_entry* entry = nullptr;
    check(archive_read_open(reader_.get(), this, nullptr, supply, nullptr));
    check(archive_read_next_header(reader_.get(), &entry));
    // The filter checks more than the first bytes. Without a match libarchive uses none.
    if (archive_filter_code(reader_.get(), 0) != filter.code) damaged("invalid header");
    require(archive_filter_count(reader_.get()) == 2, "{}: is compressed twice: decompress it once",
            name_);
  }
  FilterStream(const FilterStream&) = delete;
  FilterStream& operator=(const FilterStream&) = delete;

  size_t read(char* buffer, size_t size_bytes) override {
    const la_ssize_t got = archive_read_data(reader_.get(), buffer, size_bytes);
    check(got);
    if (got == 0) check_end();
    return static_cast<size_t>(got);
  }

  uint64_t consumed_bytes() const override { return packed_->consumed_bytes(); }

 private:
  static la_ssize_t supply(archive* reader, void* self, const void** buffer) {
    auto& stream = *static_cast<FilterStream*>(self);
    *buffer = stream.buffer_.data();
    // An exception must not propagate through libarchive: check() rethrows it after the call.
    try {
      const size_t got = stream.packed_->read(stream.buffer_.data(), stream.buffer_.size());
      stream.supplied_bytes_ += static_cast<la_int64_t>(got);
      stream.ended_ = got == 0;
      return static_cast<la_ssize_t>(got);
    } catch (...) {
      stream.error_ = std::current_exception();
      archive_set_error(reader, EIO, "cannot be read");
      return ARCHIVE_FATAL;
    }
  }

  const char* reason() const {
    const char* text = archive_error_string(reader_.get());
    return text == nullptr ? "unknown reason" : text;
  }

  [[noreturn]] void damaged(const char* why) {
    fail("{}: damaged {} data before byte {}: {}", name_, onebit::corpus::name(packing_),
         packed_->consumed_bytes(), why);
  }

  void check(la_ssize_t status) {
    if (status >= ARCHIVE_OK) return;
    if (error_) std::rethrow_exception(error_);
    require(!ended_, "{}: {} data ends prematurely (at byte {}): the file is truncated", name_,
            onebit::corpus::name(packing_), packed_->consumed_bytes());
    damaged(reason());
  }

  // Some filters treat unknown bytes as the end of the data and leave them unread.
  void check_end() {
    const bool whole = archive_filter_bytes(reader_.get(), -1) == supplied_bytes_ &&
                       (ended_ || packed_->read(buffer_.data(), 1) == 0);
    if (!whole) damaged("unexpected data after the compressed stream");
  }

  std::unique_ptr<ByteStream> packed_;
  Packing packing_;
  std::string name_;
  std::vector<char> buffer_;
  std::unique_ptr<archive, int (*)(archive*)> reader_;
  la_int64_t supplied_bytes_ = 0;
  bool ended_ = false;  // the end of the file was reached
  std::exception_ptr error_;
};

}  // namespace

std::unique_ptr<ByteStream> unpack_filter(std::unique_ptr<ByteStream> packed, Packing packing,
                                          std::string name) {
  return std::make_unique<FilterStream>(std::move(packed), packing, std::move(name));
}

namespace {

constexpr int kGzipWindow = 15 + 16;  // largest window, gzip header

class GzipStream : public ByteStream {
 public:
  GzipStream(std::unique_ptr<ByteStream> packed, std::string name)
      : packed_(std::move(packed)), name_(std::move(name)), buffer_(kPackedBytes) {
    require(inflateInit2(&state_, kGzipWindow) == Z_OK,
            "{}: out of memory while decompressing gzip", name_);
  }
  ~GzipStream() override { inflateEnd(&state_); }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  size_t read(char* buffer, size_t size_bytes) override {
    const auto wanted = static_cast<uInt>(std::min(size_bytes, size_t{1} << 30));
    state_.next_out = reinterpret_cast<Bytef*>(buffer);
    state_.avail_out = wanted;
    while (state_.avail_out == wanted) {
      if (state_.avail_in == 0) refill();
      if (state_.avail_in == 0) {
        require(between_members_,
                "{}: gzip data ends prematurely (at byte {}): the file is truncated", name_,
                packed_->consumed_bytes());
        return 0;
      }
      if (between_members_ && skip_zeros()) continue;
      between_members_ = false;
      const int status = inflate(&state_, Z_NO_FLUSH);
      require(status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR,
              "{}: damaged gzip data before byte {}: {}", name_, packed_->consumed_bytes(),
              state_.msg == nullptr ? "unknown reason" : state_.msg);
      if (status == Z_STREAM_END) {
        between_members_ = true;
        inflateReset(&state_);
      }
    }
    return wanted - state_.avail_out;
  }

  uint64_t consumed_bytes() const override { return packed_->consumed_bytes(); }

 private:
  // Zeros that fill the last block of a tape or of a copy, as gzip does. True: they are all that
  // has been read.
  bool skip_zeros() {
    while (state_.avail_in > 0 && *state_.next_in == 0) {
      ++state_.next_in;
      --state_.avail_in;
    }
    return state_.avail_in == 0;
  }
  void refill() {
    state_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
    state_.avail_in = static_cast<uInt>(packed_->read(buffer_.data(), buffer_.size()));
  }

  std::unique_ptr<ByteStream> packed_;
  std::string name_;
  std::vector<char> buffer_;
  z_stream state_{};
  bool between_members_ = false;
};

}  // namespace

std::unique_ptr<ByteStream> unpack_gzip(std::unique_ptr<ByteStream> packed, std::string name) {
  return std::make_unique<GzipStream>(std::move(packed), std::move(name));
}

}  // namespace onebit::corpus
