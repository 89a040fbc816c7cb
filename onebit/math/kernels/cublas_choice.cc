#include "onebit/math/kernels/cublas_choice.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <vector>

#include "onebit/ground/base/log.h"
#include "onebit/math/device/cuda_check.h"
#include "onebit/math/device/memory.h"
#include "onebit/math/kernels/cublas_problem.h"
#include "onebit/math/kernels/product_sample_cuda.h"

namespace onebit::kernels::cuda {
namespace {

constexpr int kCandidates = 8, kRuns = 5;
constexpr int64_t kMaxSampleTokens = 8192;        // fills the device
constexpr int64_t kMinTile = 16, kMaxTile = 128;  // of k, in the existing kernels
constexpr double kWorthMeasuring = 0x1p24;        // multiplications

using Algorithm = cublasLtMatmulAlgo_t;
using Preference = CublasHandle<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

MatrixProduct with_tokens(MatrixProduct p, int64_t tokens) {
  const auto resize = [&](auto& matrix) {
    if (matrix.empty()) return;
    matrix = {matrix.raw(), matrix.dtype(), {tokens, matrix.extent(1)}, matrix.device()};
  };
  resize(p.a);
  if (p.a_transposed) {
    resize(p.b);
    return p;
  }
  resize(p.c);
  resize(p.pre_activation);
  resize(p.saved);
  return p;
}

void prefer(Preference& preference, const MatrixProduct& p) {
  check_cublas(cublasLtMatmulPreferenceCreate(preference.put()), "cublasLtMatmulPreferenceCreate");
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check_cublas(
        cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value),
        "cublasLtMatmulPreferenceSetAttribute");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{CudaStream::kWorkspaceBytes});
  // If k is split into parts, their sums stay f32 and are added in one order. The other schemes
  // round them to the result's type or add them in arrival order.
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_bytes(p.b.raw()));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_bytes(p.a.raw()));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_bytes(p.c.raw()));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_bytes(p.c.raw()));
}

// The algorithms that the heuristic returns, best first, or none if cuBLASLt has none.
std::vector<Algorithm> ask(CudaStream& cuda, const MatrixProduct& like, void* vector) {
  const CublasProblem problem(like, vector);
  Preference preference;
  prefer(preference, like);
  std::array<cublasLtMatmulHeuristicResult_t, kCandidates> results{};
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      cuda.cublas(), problem.description(), problem.left(), problem.right(), problem.result(),
      problem.result(), preference.get(), kCandidates, results.data(), &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
  check_cublas(status, "cublasLtMatmulAlgoGetHeuristic");
  std::vector<Algorithm> candidates;
  for (int i = 0; i < found; ++i) {
    if (results[i].state == CUBLAS_STATUS_SUCCESS) candidates.push_back(results[i].algo);
  }
  return candidates;
}

bool cuts_k(const Algorithm& algorithm) {
  int32_t parts = 0;
  check_cublas(cublasLtMatmulAlgoConfigGetAttribute(&algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM,
                                                    &parts, sizeof parts, nullptr),
               "cublasLtMatmulAlgoConfigGetAttribute");
  return parts != 0 && parts != 1;
}

class EventTimer {
 public:
  explicit EventTimer(CudaStream& cuda) : cuda_(cuda), begin_(make()), end_(make()) {}

  // Milliseconds per call, over `kRuns` calls.
  template <typename Work>
  float time(const Work& work) {
    check_cuda(cudaEventRecord(begin_.get(), cuda_.stream()), "cudaEventRecord");
    for (int run = 0; run < kRuns; ++run) work();
    check_cuda(cudaEventRecord(end_.get(), cuda_.stream()), "cudaEventRecord");
    check_cuda(cudaEventSynchronize(end_.get()), "cudaEventSynchronize");
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, begin_.get(), end_.get()),
               "cudaEventElapsedTime");
    return milliseconds / kRuns;
  }

 private:
  using Event = std::unique_ptr<CUevent_st, decltype(&cudaEventDestroy)>;
  static Event make() {
    cudaEvent_t event = nullptr;
    check_cuda(cudaEventCreate(&event), "cudaEventCreate");
    return {event, &cudaEventDestroy};
  }

  CudaStream& cuda_;
  Event begin_, end_;
};

// Whether cuBLASLt accepts an algorithm for each of these numbers of tokens.
bool takes_all(CudaStream& cuda, const MatrixProduct& product, void* vector, TokenRange tokens,
               const Algorithm& algorithm) {
  for (int64_t count = tokens.first; count <= tokens.last; ++count) {
    const CublasProblem problem(with_tokens(product, count), vector);
    cublasLtMatmulHeuristicResult_t result{};
    const cublasStatus_t status = cublasLtMatmulAlgoCheck(
        cuda.cublas(), problem.description(), problem.left(), problem.right(), problem.result(),
        problem.result(), &algorithm, &result);
    if (status != CUBLAS_STATUS_SUCCESS) return false;
    if (result.workspaceSize > size_t{CudaStream::kWorkspaceBytes}) return false;
  }
  return true;
}

struct Measured {
  size_t candidate;
  float milliseconds;
};

// The numbers of tokens, at most kMaxSampleTokens, for which bits are compared. The last is the
// largest. If the sum is over tokens, an algorithm first adds those beyond its whole tiles, so that
// tiles of different sizes add in the same order for some numbers only: there must be one for every
// remainder that can distinguish two of them.
std::vector<int64_t> sample_tokens(const MatrixProduct& product, TokenRange tokens) {
  if (!product.a_transposed) return {std::min(tokens.last, kMaxSampleTokens)};
  const int64_t above = std::max<int64_t>(tokens.last - kMaxSampleTokens, 0);
  const int64_t left_out = (above + kMaxTile - 1) / kMaxTile * kMaxTile;
  const int64_t last = tokens.last - left_out,
                first = std::max<int64_t>(tokens.first - left_out, 1);
  std::vector<int64_t> counts;
  for (int64_t count = first; count < std::min(last, first + kMaxTile); count += kMinTile) {
    counts.push_back(count);
  }
  counts.push_back(last);
  return counts;
}

// The candidates among `known` that give the bits of the first of all on a sample.
std::vector<size_t> of_equal_bits(CudaStream& cuda, ProductSample& sample,
                                  const std::vector<Algorithm>& candidates,
                                  const std::vector<size_t>& known) {
  const CublasProblem problem(sample.product(), sample.vector());
  std::vector<size_t> equal;
  uint64_t wanted = 0;
  for (const size_t i : known) {
    sample.clear();
    const bool runs = problem.run(cuda, candidates[i]) == CUBLAS_STATUS_SUCCESS;
    if (!runs && i == 0) break;
    if (!runs) continue;
    const uint64_t bits = sample.fingerprint();
    if (i == 0) wanted = bits;
    if (bits == wanted) equal.push_back(i);
  }
  return equal;
}

// The candidates that give the bits of the first one, fastest first.
std::vector<Measured> measure(CudaStream& cuda, const MatrixProduct& product,
                              const std::vector<int64_t>& tokens,
                              const std::vector<Algorithm>& candidates) {
  std::vector<size_t> equal;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (!cuts_k(candidates[i])) equal.push_back(i);
  }
  std::vector<Measured> equals;
  for (const int64_t count : tokens) {
    ProductSample sample(cuda, with_tokens(product, count));
    equal = of_equal_bits(cuda, sample, candidates, equal);
    if (count != tokens.back()) continue;
    const CublasProblem problem(sample.product(), sample.vector());
    EventTimer timer(cuda);
    for (const size_t i : equal) {
      const auto run = [&] { check_cublas(problem.run(cuda, candidates[i]), "cublasLtMatmul"); };
      equals.push_back({i, timer.time(run)});
    }
  }
  std::stable_sort(equals.begin(), equals.end(), [](const Measured& x, const Measured& y) {
    return x.milliseconds < y.milliseconds;
  });
  return equals;
}

}  // namespace

uint32_t alignment_bytes(const void* data) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  return static_cast<uint32_t>(std::min<uintptr_t>(address & (~address + 1), 256));
}

TokenRange tokens_around(int64_t tokens) {
  const auto octave = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(tokens - 1)));
  const int64_t step = std::max<int64_t>(octave / 8, 8);
  const int64_t last = (tokens + step - 1) / step * step;
  return {last - step + 1, last};
}

std::optional<Algorithm> choose_algorithm(CudaStream& cuda, const MatrixProduct& product,
                                          void* vector, TokenRange tokens) {
  const std::vector<Algorithm> candidates = ask(cuda, with_tokens(product, tokens.last), vector);
  if (candidates.empty()) return std::nullopt;
  const std::vector<int64_t> sampled = sample_tokens(product, tokens);
  const MatrixProduct like = with_tokens(product, sampled.back());
  const double multiplications =
      static_cast<double>(like.m()) * static_cast<double>(like.n()) * static_cast<double>(like.k());
  const auto takes = [&](const Algorithm& algorithm) {
    return takes_all(cuda, product, vector, tokens, algorithm);
  };
  if (candidates.size() == 1 || multiplications < kWorthMeasuring || cuts_k(candidates.front()) ||
      !ProductSample::fits(like) || !takes(candidates.front())) {
    return candidates.front();
  }
  std::vector<Measured> equals;
  try {
    equals = measure(cuda, product, sampled, candidates);
  } catch (const memory::OutOfMemory&) {
    // Another process on the device has taken the memory that was free.
    return candidates.front();
  }
  for (const Measured& one : equals) {
    if (one.candidate != 0 && !takes(candidates[one.candidate])) continue;
    log_debug(
        "{} [{} x {}] . [{} x {}], epilogue {}: algorithm {} of {}, {} with bit-identical results, "
        "{:.4f} ms",
        name_of(like.a.dtype()), like.m(), like.k(), like.k(), like.n(),
        static_cast<int>(like.epilogue), one.candidate, candidates.size(), equals.size(),
        one.milliseconds);
    return candidates[one.candidate];
  }
  return candidates.front();
}

}  // namespace onebit::kernels::cuda
