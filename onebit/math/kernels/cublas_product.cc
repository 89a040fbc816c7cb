#include "onebit/math/kernels/cublas_product.h"

#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <vector>

#include "onebit/ground/base/log.h"
#include "onebit/math/device/cuda_check.h"
#include "onebit/math/device/memory.h"

namespace onebit::kernels::cuda {

namespace {

cudaDataType_t type_of(DType dtype) {
  return dtype == DType::kF32 ? CUDA_R_32F : dtype == DType::kBF16 ? CUDA_R_16BF : CUDA_R_16F;
}

}  // namespace

// cuBLASLt expects column-major matrices, in which a row-major [rows, columns] is [columns, rows].
// So c^T = b^T . a^T, with our b as its left operand (its A) and our a as its right one (its B).
CublasProblem::CublasProblem(const MatrixProduct& product, void* vector) : product_(product) {
  const auto make = [](Layout& layout, const ConstView& matrix) {
    check_cublas(cublasLtMatrixLayoutCreate(
                     layout.put(), type_of(matrix.dtype()), static_cast<uint64_t>(matrix.extent(1)),
                     static_cast<uint64_t>(matrix.extent(0)), matrix.extent(1)),
                 "cublasLtMatrixLayoutCreate");
  };
  make(left_, product.b);
  make(right_, product.a);
  make(result_, product.c);
  const auto compute = product.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  check_cublas(cublasLtMatmulDescCreate(description_.put(), compute, CUDA_R_32F),
               "cublasLtMatmulDescCreate");
  set(CUBLASLT_MATMUL_DESC_TRANSA, product.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, product.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  describe_epilogue(vector);
}

void CublasProblem::describe_epilogue(void* vector) {
  const auto give_vector = [&](cublasLtEpilogue_t epilogue) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(product_.c.dtype()));
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, vector);
  };
  const auto give_matrix = [&](const void* matrix) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, matrix);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, product_.n());
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, type_of(product_.c.dtype()));
  };
  switch (product_.epilogue) {
    case Epilogue::kNone:
      return;
    case Epilogue::kBias:
      return give_vector(CUBLASLT_EPILOGUE_BIAS);
    case Epilogue::kBiasGeluTanh:
      give_vector(CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
      return give_matrix(product_.pre_activation.raw());
    case Epilogue::kGeluTanhGradient:
      set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DGELU);
      return give_matrix(product_.saved.raw());
    case Epilogue::kRowSums:  // c, and so the sums, are f32
      return give_vector(CUBLASLT_EPILOGUE_BGRADB);
  }
}

cublasStatus_t CublasProblem::run(CudaStream& cuda, const cublasLtMatmulAlgo_t& algorithm) const {
  const float alpha = 1, beta = product_.accumulate ? 1.0f : 0.0f;
  return cublasLtMatmul(cuda.cublas(), description(), &alpha, product_.b.raw(), left(),
                        product_.a.raw(), right(), &beta, product_.c.raw(), result(),
                        product_.c.raw(), result(), &algorithm, cuda.workspace(),
                        CudaStream::kWorkspaceBytes, cuda.stream());
}

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

namespace {

CudaStream::ProductKey key_of(const MatrixProduct& p, int64_t tokens) {
  const int64_t options = p.a_transposed | p.b_transposed << 1 | p.accumulate << 2 | p.tf32 << 3;
  const ConstView beside = p.saved.empty() ? ConstView(p.pre_activation) : p.saved;
  return {tokens,
          p.n(),
          p.a_transposed ? p.m() : p.k(),
          static_cast<int64_t>(p.a.dtype()),
          static_cast<int64_t>(p.c.dtype()),
          options,
          static_cast<int64_t>(p.epilogue),
          alignment_bytes(p.a.raw()),
          alignment_bytes(p.b.raw()),
          alignment_bytes(p.c.raw()),
          alignment_bytes(beside.raw())};
}

}  // namespace

bool suits_cublas(const MatrixProduct& p) {
  const auto whole = [](const ConstView& matrix) {
    return matrix.empty() || (matrix.extent(1) * size_bytes_of(matrix.dtype()) % 16 == 0 &&
                              reinterpret_cast<uintptr_t>(matrix.raw()) % 16 == 0);
  };
  return whole(p.a) && whole(p.b) && whole(p.c) && whole(p.pre_activation) && whole(p.saved);
}

bool cublas_product(CudaStream& cuda, const MatrixProduct& p, void* vector) {
  const CublasProblem problem(p, vector);
  const int64_t tokens = p.a.extent(0);
  const TokenRange around = tokens_around(tokens);
  // The heuristic's algorithm for the last number of tokens in a range may not accept others in it.
  // These have their own.
  auto& known = cuda.products();
  const auto exact = key_of(p, tokens), shared = key_of(p, around.last);
  auto found = known.find(exact);
  if (found == known.end()) found = known.find(shared);
  if (found == known.end()) {
    found = known.emplace(shared, choose_algorithm(cuda, p, vector, around)).first;
  }
  if (!found->second) return false;
  cublasStatus_t status = problem.run(cuda, *found->second);
  const bool refused =
      status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE;
  if (refused && found->first != exact) {
    found = known.emplace(exact, choose_algorithm(cuda, p, vector, {tokens, tokens})).first;
    if (!found->second) return false;
    status = problem.run(cuda, *found->second);
  }
  check_cublas(status, "cublasLtMatmul");
  return true;
}

}  // namespace onebit::kernels::cuda
