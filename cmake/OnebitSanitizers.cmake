# ONEBIT_SANITIZE: what the sanitizers need of every target, and the tests' environment.

# Callers of the floors (tests and the command line) are compiled without the checks for undefined
# behaviour, which takes half of the time. The sources of the floors have all checks, and so have the
# functions of their headers, because the floors are linked first (onebit_link_first).
add_library(onebit_caller INTERFACE)
if(ONEBIT_SANITIZE MATCHES "undefined")
  target_compile_options(onebit_caller INTERFACE -fno-sanitize=undefined)
endif()

# Tests run side by side, and some make 16 ranks with threads of their own: threads that spin while
# they wait would keep the other tests from their processors.
set(ONEBIT_TEST_ENVIRONMENT OMPI_MCA_btl_vader_single_copy_mechanism=none OMP_WAIT_POLICY=passive)

# The time limit of a test whose limit without sanitizers is `seconds`.
function(onebit_test_timeout seconds result)
  if(ONEBIT_SANITIZE)
    math(EXPR seconds "3 * ${seconds}")
  endif()
  set(${result} ${seconds} PARENT_SCOPE)
endfunction()

# onebit_reference(SOURCE...): formulas in double precision that tests compare with. They contain no code
# of the program, and finite differences call them thousands of times: they are not instrumented.
function(onebit_reference)
  if(ONEBIT_SANITIZE)
    set_source_files_properties(${ARGN} PROPERTIES
      COMPILE_OPTIONS "-O2;-fno-sanitize=all" SKIP_PRECOMPILE_HEADERS ON)
  endif()
endfunction()

# The thread sanitizer runs the tests of the floors that start threads: parallel loops, readers
# ahead of the step, ranks, exchanges beside the backward pass, checkpoints, connections of a server.
# The other sanitizers leave out the floors that only read arguments and start processes, which take
# a quarter of the time to compile. Not in the cache: an old build folder would keep an old list.
set(ONEBIT_THREADED_TESTS base batches checkpoint comm compress corpus engine one_bit optim serve
  transport)
set(ONEBIT_UNSANITIZED_TESTS cli cluster commands launch plan)

# Floors whose operations take most of the time of the tests. Others are compiled with -Og, which takes
# four fifths of the time of -O1.
set(ONEBIT_OPTIMIZED_FLOORS kernels ops attention updates compress tensor one_bit)

# Highway compiles every loop once for each instruction set. Sanitized loops take long to compile, so
# builds for tests have only AVX2, which most machines have, and on others the compiler's default.
# (Floors set Highway's other switch, HWY_DISABLED_TARGETS.)
if(ONEBIT_SANITIZE OR ONEBIT_CUDA STREQUAL "EMULATED")
  add_compile_definitions(
    "HWY_BROKEN_TARGETS=(HWY_SSSE3|HWY_SSE4|HWY_AVX3|HWY_AVX3_DL)")
  include(CheckCXXSourceRuns)
  check_cxx_source_runs("
    int main() {
      const bool has = __builtin_cpu_supports(\"avx2\") && __builtin_cpu_supports(\"fma\") &&
                       __builtin_cpu_supports(\"bmi2\");
      return has ? 0 : 1;
    }" ONEBIT_MACHINE_HAS_AVX2)
  if(ONEBIT_MACHINE_HAS_AVX2)
    add_compile_options(-march=haswell)
  endif()
endif()

if(ONEBIT_SANITIZE)
  add_compile_options(-fsanitize=${ONEBIT_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${ONEBIT_SANITIZE})
  if(ONEBIT_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
    # The address sanitizer ends a program at a null pointer and outside of an object just as well.
    if(ONEBIT_SANITIZE MATCHES "address")
      add_compile_options(-fno-sanitize=null,object-size)
    endif()
    # A third of the time to compile, for what processors and the address sanitizer notice. Fuzzers have
    # these checks.
    if(NOT ONEBIT_FUZZ)
      add_compile_options(-fno-sanitize=alignment,pointer-overflow,vptr)
    endif()
  endif()
  if(ONEBIT_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(ONEBIT_KERNEL_OPTIONS "--param=asan-use-after-return=0")
  endif()
  set(asan_options allocator_may_return_null=1:detect_stack_use_after_return=1)
  # Open MPI unloads its modules before leaks are searched for, so their leaks cannot be excluded by
  # name. Tests with ranks as threads run the same code, and leaks are searched for there.
  set(ONEBIT_MPI_TEST_ENVIRONMENT ASAN_OPTIONS=${asan_options}:detect_leaks=0)
  set(suppressions ${PROJECT_SOURCE_DIR}/tools/sanitizers)
  # Every n-th of many combinations (tests/ops/backend_test.h).
  if(ONEBIT_SANITIZE MATCHES "thread")
    list(APPEND ONEBIT_TEST_ENVIRONMENT ONEBIT_TEST_PART=4)
  else()
    list(APPEND ONEBIT_TEST_ENVIRONMENT ONEBIT_TEST_PART=3)
  endif()
  list(APPEND ONEBIT_TEST_ENVIRONMENT
    ASAN_OPTIONS=${asan_options}
    UBSAN_OPTIONS=print_stacktrace=1
    LSAN_OPTIONS=suppressions=${suppressions}/leaks.txt:print_suppressions=0
    TSAN_OPTIONS=suppressions=${suppressions}/threads.txt:allocator_may_return_null=1:atexit_sleep_ms=0)
  if(ONEBIT_SANITIZE MATCHES "thread")
    # Inside libraries only: their OpenMP runtime is not instrumented (our own loops run on
    # parallel_parts_pool.cc in this build).
    list(APPEND ONEBIT_TEST_ENVIRONMENT OMP_NUM_THREADS=1)
  endif()
endif()
