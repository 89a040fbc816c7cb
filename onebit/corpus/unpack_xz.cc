#include <lzma.h>

#include <vector>

#include "onebit/base/error.h"
#include "onebit/corpus/byte_stream.h"

namespace onebit::corpus {
namespace {

constexpr size_t kPackedBytes = size_t{256} << 10;
constexpr uint64_t kMemoryLimitBytes = uint64_t{1} << 30;  // more than any preset of xz needs

const char* reason_of(lzma_ret status) {
  switch (status) {
    case LZMA_FORMAT_ERROR:
      return "not xz data";
    case LZMA_OPTIONS_ERROR:
      return "unsupported options";
    case LZMA_DATA_ERROR:
      return "a checksum differs";
    case LZMA_MEM_ERROR:
    case LZMA_MEMLIMIT_ERROR:
      return "unpacking it needs more than 1 GiB of memory";
    default:
      return "unknown reason";
  }
}

class XzStream : public ByteStream {
 public:
  XzStream(std::unique_ptr<ByteStream> packed, std::string name)
      : packed_(std::move(packed)), name_(std::move(name)), buffer_(kPackedBytes) {
    require(lzma_stream_decoder(&state_, kMemoryLimitBytes, LZMA_CONCATENATED) == LZMA_OK,
            "{}: no memory to unpack xz", name_);
  }
  ~XzStream() override { lzma_end(&state_); }
  XzStream(const XzStream&) = delete;
  XzStream& operator=(const XzStream&) = delete;

  size_t read(char* buffer, size_t size_bytes) override {
    state_.next_out = reinterpret_cast<uint8_t*>(buffer);
    state_.avail_out = size_bytes;
    while (!ended_ && state_.avail_out == size_bytes) {
      if (state_.avail_in == 0) {
        state_.next_in = reinterpret_cast<const uint8_t*>(buffer_.data());
        state_.avail_in = packed_->read(buffer_.data(), buffer_.size());
      }
      const bool last = state_.avail_in == 0;
      const lzma_ret status = lzma_code(&state_, last ? LZMA_FINISH : LZMA_RUN);
      require(status != LZMA_BUF_ERROR,
              "{}: ends inside its xz data (at byte {}): it was cut short", name_,
              packed_->consumed_bytes());
      require(status == LZMA_OK || status == LZMA_STREAM_END,
              "{}: damaged xz data before byte {}: {}", name_, packed_->consumed_bytes(),
              reason_of(status));
      ended_ = status == LZMA_STREAM_END;
    }
    return size_bytes - state_.avail_out;
  }

  uint64_t consumed_bytes() const override { return packed_->consumed_bytes(); }

 private:
  std::unique_ptr<ByteStream> packed_;
  std::string name_;
  std::vector<char> buffer_;
  lzma_stream state_ = LZMA_STREAM_INIT;
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<ByteStream> unpack_xz(std::unique_ptr<ByteStream> packed, std::string name) {
  return std::make_unique<XzStream>(std::move(packed), std::move(name));
}

}  // namespace onebit::corpus
