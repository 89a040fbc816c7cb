#include "onebit/data/corpus/byte_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/file.h"

namespace onebit::corpus {
namespace {

class PlainStream : public ByteStream {
 public:
  PlainStream(const Path& path, std::string name) : name_(std::move(name)) {
    if (path == "-") {
      descriptor_ = STDIN_FILENO;
      return;
    }
    descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    require_call(descriptor_, "{}: cannot open", name_);
    ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_SEQUENTIAL);
    size_at_opening_ = regular_size();
  }
  ~PlainStream() override {
    if (descriptor_ != STDIN_FILENO) ::close(descriptor_);
  }
  PlainStream(const PlainStream&) = delete;
  PlainStream& operator=(const PlainStream&) = delete;

  // Returns the first bytes, which read() returns again.
  std::string_view peek(size_t count) {
    peeked_.resize(count);
    size_t used = 0;
    while (used < count) {
      const size_t got = read_file(peeked_.data() + used, count - used);
      if (got == 0) break;
      used += got;
    }
    peeked_.resize(used);
    return peeked_;
  }

  size_t read(char* buffer, size_t size_bytes) override {
    if (peeked_used_ < peeked_.size()) {
      const size_t count = std::min(size_bytes, peeked_.size() - peeked_used_);
      std::memcpy(buffer, peeked_.data() + peeked_used_, count);
      peeked_used_ += count;
      return count;
    }
    return read_file(buffer, size_bytes);
  }

  uint64_t consumed_bytes() const override { return consumed_bytes_; }
  // Of a regular file, otherwise 0.
  uint64_t size_at_opening() const { return size_at_opening_; }

 private:
  size_t read_file(char* buffer, size_t size_bytes) {
    for (;;) {
      const ssize_t got = ::read(descriptor_, buffer, size_bytes);
      const CallResult result = got;
      if (result.failed() && result.error() == EINTR) continue;
      require_call(result, "{}: cannot read at byte {}", name_, consumed_bytes_);
      consumed_bytes_ += static_cast<uint64_t>(got);
      if (got == 0) check_end();
      return static_cast<size_t>(got);
    }
  }

  // Pipes and standard input have none.
  uint64_t regular_size() const {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) return 0;
    return static_cast<uint64_t>(status.st_size);
  }

  // A program that truncates and rewrites the file would otherwise take texts away in silence. File
  // systems that state another size than they can read state it still.
  void check_end() const {
    if (consumed_bytes_ >= size_at_opening_) return;
    require(regular_size() >= size_at_opening_,
            "{}: was shortened while it was read: it had {} bytes when it was opened, and ended "
            "after {}; do not change a file that is being read",
            name_, size_at_opening_, consumed_bytes_);
  }

  std::string name_;
  int descriptor_ = -1;
  std::string peeked_;
  size_t peeked_used_ = 0;
  uint64_t consumed_bytes_ = 0;
  uint64_t size_at_opening_ = 0;
};

constexpr size_t kMagicBytes = 10;

Packing packing_of(std::string_view magic) {
  using namespace std::string_view_literals;
  if (magic.starts_with("\x1f\x8b\x08"sv)) return Packing::kGzip;
  if (magic.starts_with("\xfd"
                        "7zXZ\0"sv)) {
    return Packing::kXz;
  }
  if (magic.starts_with("\x28\xb5\x2f\xfd"sv)) return Packing::kZstd;
  if (magic.starts_with("\x04\x22\x4d\x18"sv)) return Packing::kLz4;
  // Text may begin with "BZh". In bzip2 data the marker of a block or of the end follows the digit.
  const bool bzip2 = magic.starts_with("BZh"sv) && magic.size() == kMagicBytes &&
                     (magic.substr(4) == "1AY&SY"sv || magic.substr(4) == "\x17rE8P\x90"sv);
  return bzip2 ? Packing::kBzip2 : Packing::kNone;
}

struct Ending {
  const char* text;
  Packing packing;
};
constexpr Ending kEndings[] = {{".gz", Packing::kGzip},
                               {".xz", Packing::kXz},
                               {".zst", Packing::kZstd},
                               {".bz2", Packing::kBzip2},
                               {".lz4", Packing::kLz4}};

}  // namespace

const char* name(Packing packing) {
  switch (packing) {
    case Packing::kNone:
      return "plain";
    case Packing::kGzip:
      return "gzip";
    case Packing::kXz:
      return "xz";
    case Packing::kZstd:
      return "zstd";
    case Packing::kBzip2:
      return "bzip2";
    case Packing::kLz4:
      return "lz4";
  }
  return "plain";
}

Packing packing_of_ending(const Path& path) {
  for (const Ending& ending : kEndings) {
    if (path.extension() == ending.text) return ending.packing;
  }
  return Packing::kNone;
}

Path unpacked_name(Path path) {
  if (packing_of_ending(path) != Packing::kNone) path.replace_extension();
  return path;
}

std::unique_ptr<ByteStream> open_byte_stream(const Path& path, const std::string& name) {
  auto plain = std::make_unique<PlainStream>(path, name);
  // A pointer of Git LFS in place of the data is shorter than this. The function refuses it.
  constexpr uint64_t kPointerEnd = 1024;
  const uint64_t size = plain->size_at_opening();
  if (size > 0 && size < kPointerEnd) read_regular_file(path, UINT64_MAX);
  const std::string_view magic = plain->peek(kMagicBytes);
  const Packing packing = packing_of(magic);
  if (packing == Packing::kGzip) return unpack_gzip(std::move(plain), name);
  if (packing != Packing::kNone) return unpack_filter(std::move(plain), packing, name);
  const Packing named = packing_of_ending(path);
  require(named == Packing::kNone || magic.empty(),
          "{}: has the suffix {} but contains no {} data: rename it or compress it again", name,
          path.extension().string(), onebit::corpus::name(named));
  return plain;
}

std::string read_unpacked(const Path& path, const FileKind& kind) {
  const bool is_input = path == "-";
  const std::string name = is_input ? "standard input" : path.string();
  std::error_code ignored;  // opening it says why
  require(is_input || !std::filesystem::is_directory(path, ignored),
          "{}: is a folder, {} was expected", name, kind.name);
  const auto stream = open_byte_stream(path, name);
  std::string content;
  std::vector<char> buffer(size_t{1} << 20);
  for (;;) {
    const size_t got = stream->read(buffer.data(), buffer.size());
    if (got == 0) return content;
    require(content.size() + got <= kind.most_bytes,
            "{}: contains more than {} MiB (unpacked), too much for {}", name,
            kind.most_bytes >> 20, kind.name);
    content.append(buffer.data(), got);
  }
}

}  // namespace onebit::corpus
