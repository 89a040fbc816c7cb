#include "onebit/data/samples/hdf5_reader.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "onebit/data/samples/hdf5_rows.h"
#include "onebit/data/samples/sample.h"
#include "onebit/ground/base/error.h"

namespace onebit::samples {
namespace {

// A message in the pipe: a word for its kind, a number, and then the data described here.
enum class Word : uint32_t {
  kRows = 0x1d01,   // number of rows, and for each array its lengths and numbers, each with a count
  kError = 0x1d02,  // number of bytes, the message
  kEnd = 0x1d03,    // 0
};
struct Header {
  Word word;
  uint64_t number;
};
constexpr uint64_t kMaxRows = uint64_t{1} << 24, kMaxNumbers = uint64_t{1} << 28;
constexpr uint64_t kMaxMessage = uint64_t{1} << 16;
// CPU seconds per block, which takes about one. Damaged files can keep libhdf5 busy forever.
constexpr int kMaxSeconds = 20;

// What reading may allocate. A block needs at most a few times 256 MiB, and a damaged length in a
// file of 10 KB makes libhdf5 allocate, and fill, any number of gigabytes.
constexpr uint64_t kMaxMemoryBytes = uint64_t{4} << 30;

// Beyond what this process has mapped already.
void limit_memory() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  if (pages == 0) return;
  const rlim_t most = pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) + kMaxMemoryBytes;
  const rlimit limit = {most, most};
  ::setrlimit(RLIMIT_AS, &limit);
}

void limit_time() {
  const itimerval limit = {.it_interval = {0, 0}, .it_value = {kMaxSeconds, 0}};
  ::setitimer(ITIMER_PROF, &limit, nullptr);
}

// The child's end of the pipe.
class PipeSink : public Hdf5RowsSink {
 public:
  explicit PipeSink(int pipe) : pipe_(pipe) {}

  void rows(uint64_t count, const std::array<Hdf5Rows, kHdf5Arrays.size()>& arrays) override {
    header(Word::kRows, count);
    for (const Hdf5Rows& array : arrays) {
      list(array.lengths);
      list(array.numbers);
    }
    limit_time();
  }
  void header(Word word, uint64_t number) {
    // Sent separately, because the struct contains padding.
    write(&word, sizeof word);
    write(&number, sizeof number);
  }
  void write(const void* data, size_t size_bytes) {
    const auto* bytes = static_cast<const char*>(data);
    while (size_bytes > 0) {
      const ssize_t written = ::write(pipe_, bytes, size_bytes);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) ::_exit(1);  // the parent has closed the pipe
      bytes += written;
      size_bytes -= static_cast<size_t>(written);
    }
  }

 private:
  template <typename Number>
  void list(const std::vector<Number>& numbers) {
    const uint64_t count = numbers.size();
    write(&count, sizeof count);
    write(numbers.data(), count * sizeof(Number));
  }

  int pipe_;
};

// Ends the process. A crash leaves no core file, and no output of the libraries reaches the user:
// the parent reports what happened.
[[noreturn]] void run_child(const Path& path, int pipe) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int signal : {SIGPIPE, SIGPROF, SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) {
    std::signal(signal, SIG_DFL);
  }
  // The parent handles interruptions.
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGHUP}) std::signal(signal, SIG_IGN);
  const rlimit no_core = {0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere >= 0) ::dup2(nowhere, STDERR_FILENO);
  // The file is only read. File systems without locks must work, too.
  ::setenv("HDF5_USE_FILE_LOCKING", "FALSE", 0);
  limit_time();
  limit_memory();
  PipeSink sink(pipe);
  try {
    read_hdf5(path, sink);
    sink.header(Word::kEnd, 0);
  } catch (const std::exception& error) {
    const std::string message = failure_text(error);
    sink.header(Word::kError, message.size());
    sink.write(message.data(), message.size());
  }
  ::_exit(0);
}

class Hdf5Reader : public SampleReader {
 public:
  explicit Hdf5Reader(const Path& path) : name_(path.string()) {
    require(std::filesystem::exists(path), "{}: no such file", name_);
    int ends[2];
    require_call(::pipe2(ends, O_CLOEXEC), "{}: cannot create a pipe", name_);
    ::fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
    child_ = ::fork();
    const int reason = errno;
    if (child_ == 0) {
      ::close(ends[0]);
      run_child(path, ends[1]);
    }
    ::close(ends[1]);
    pipe_ = ends[0];
    if (child_ > 0) return;
    ::close(pipe_);
    fail("{}: cannot start a process: {}", name_, reason_of(reason));
  }
  ~Hdf5Reader() override {
    if (pipe_ >= 0) ::close(pipe_);
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    wait();
  }
  Hdf5Reader(const Hdf5Reader&) = delete;
  Hdf5Reader& operator=(const Hdf5Reader&) = delete;

  bool read(PaddedSample& sample) override {
    while (next_ == rows_) {
      if (ended_ || !receive()) return false;
    }
    sample.clear();
    sample.place = fmt::format("{}: row {}", name_, first_ + next_);
    std::vector<int64_t> label;
    std::vector<int64_t>* const targets[] = {&sample.input_ids,     &sample.segment_ids,
                                             &sample.input_mask,    &sample.masked_lm_positions,
                                             &sample.masked_lm_ids, &label};
    for (size_t i = 0; i < arrays_.size(); ++i) {
      if (arrays_[i].lengths.empty()) continue;
      const auto begin = arrays_[i].numbers.begin() + static_cast<ptrdiff_t>(begins_[i]);
      targets[i]->assign(begin, begin + arrays_[i].lengths[next_]);
      begins_[i] += arrays_[i].lengths[next_];
    }
    if (!label.empty()) sample.next_sentence = label.front();
    ++next_;
    return true;
  }

  uint64_t consumed_bytes() const override { return 0; }

 private:
  int wait() {
    int status = 0;
    while (::waitpid(child_, &status, 0) < 0 && errno == EINTR) {
    }
    child_ = -1;
    return status;
  }

  // Called when the child has ended without a message.
  [[noreturn]] void fail_of_child() {
    const int status = wait();
    require(!WIFSIGNALED(status) || WTERMSIG(status) != SIGPROF,
            "{}: libhdf5 made no progress for {} s: the file is damaged; copy it again", name_,
            kMaxSeconds);
    require(!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL,
            "{}: the process reading it was killed: there may be too little memory", name_);
    fail("{}: libhdf5 crashed while reading the file{}: the file is damaged; copy it again", name_,
         WIFSIGNALED(status) ? fmt::format(" (signal {})", WTERMSIG(status)) : "");
  }

  void take(void* to, size_t size_bytes) {
    auto* bytes = static_cast<char*>(to);
    while (size_bytes > 0) {
      const ssize_t got = ::read(pipe_, bytes, size_bytes);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) fail_of_child();
      bytes += got;
      size_bytes -= static_cast<size_t>(got);
    }
  }

  template <typename Number>
  void take(std::vector<Number>& numbers) {
    uint64_t count = 0;
    take(&count, sizeof count);
    require_sound(count <= kMaxNumbers);
    numbers.resize(count);
    take(numbers.data(), count * sizeof(Number));
  }

  // Checks values from a child whose memory libhdf5 may have corrupted.
  void require_sound(bool sound) const {
    require(sound, "{}: libhdf5 returned invalid data: the file is damaged; copy it again", name_);
  }

  // Receives the next block of rows. Returns false at the end.
  bool receive() {
    Header header{};
    take(&header.word, sizeof header.word);
    take(&header.number, sizeof header.number);
    if (header.word == Word::kEnd) {
      ended_ = true;
      wait();
      return false;
    }
    if (header.word == Word::kError) {
      require_sound(header.number <= kMaxMessage);
      std::string message(header.number, '\0');
      take(message.data(), message.size());
      throw Error(message);
    }
    require_sound(header.word == Word::kRows && header.number >= 1 && header.number <= kMaxRows);
    first_ += rows_;
    rows_ = header.number;
    next_ = 0;
    begins_.fill(0);
    for (Hdf5Rows& array : arrays_) {
      take(array.lengths);
      take(array.numbers);
      require_sound(array.lengths.empty() || array.lengths.size() == rows_);
      uint64_t numbers = 0;
      for (const uint32_t length : array.lengths) numbers += length;
      require_sound(numbers == array.numbers.size());
    }
    return true;
  }

  std::string name_;
  int pipe_ = -1;
  pid_t child_ = -1;
  bool ended_ = false;
  std::array<Hdf5Rows, kHdf5Arrays.size()> arrays_;
  std::array<uint64_t, kHdf5Arrays.size()> begins_{};  // position of the next row's numbers
  uint64_t first_ = 0, rows_ = 0, next_ = 0;  // first row of the block, its rows, next row to read
};

}  // namespace

std::unique_ptr<SampleReader> open_hdf5(const Path& path) {
  return std::make_unique<Hdf5Reader>(path);
}

}  // namespace onebit::samples
