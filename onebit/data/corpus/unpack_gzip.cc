#include <zlib.h>

#include <vector>

#include "onebit/data/corpus/byte_stream.h"
#include "onebit/ground/base/error.h"

namespace onebit::corpus {
namespace {

constexpr size_t kPackedBytes = size_t{256} << 10;
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
