# Enables the CUDA language and finds its libraries where ONEBIT_HAS_CUDA. Kernels are compiled to
# machine code for Ampere and Hopper, and to Hopper PTX for later architectures.
if(NOT ONEBIT_HAS_CUDA)
  return()
endif()

# The emulated device needs no toolkit. Its include folder precedes the project's: it replaces CUDA
# headers and some of onebit/kernels. The host compiler compiles kernels (onebit_compile_kernels).
if(ONEBIT_CUDA STREQUAL "EMULATED")
  target_include_directories(onebit_flags BEFORE INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/tests/emulated_cuda/include>)
  set(ONEBIT_CUDA_LIBRARIES onebit_emulated_cuda)
  set(ONEBIT_HAS_NCCL ON)
  message(NOTICE "onebit: CUDA is emulated on the CPU, for tests only")
  return()
endif()

# CMake itself reads the architectures from the environment variable CUDAARCHS.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90a-real 90-virtual)
endif()
if(NOT DEFINED CMAKE_CUDA_HOST_COMPILER)
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
endif()
if(NOT DEFINED CMAKE_CUDA_COMPILER_LAUNCHER AND DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
enable_language(CUDA)
# CMake before 3.26 does not know that nvcc supports C++20.
if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
  set(CMAKE_CUDA20_COMPILE_FEATURES cuda_std_20)
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.4)
  message(FATAL_ERROR "nvcc ${CMAKE_CUDA_COMPILER_VERSION} is too old for C++20 in kernels: install "
                      "CUDA 12.4 or newer, or build with -DONEBIT_CUDA=OFF")
endif()
find_package(CUDAToolkit REQUIRED)
set(ONEBIT_CUDA_LIBRARIES CUDA::cudart_static)
# cuBLASLt and NCCL are loaded at run time (device/cuda_cublas_library.cc, transport/nccl_library.cc), by
# versioned file names.
if(NOT TARGET CUDA::cublasLt)
  message(FATAL_ERROR "cuBLASLt of CUDA ${CUDAToolkit_VERSION} was not found: install it beside nvcc "
                      "(libcublas-dev), or build with -DONEBIT_CUDA=OFF")
endif()
get_target_property(cublas CUDA::cublasLt IMPORTED_LOCATION)
get_filename_component(ONEBIT_CUBLAS_PATH ${cublas} DIRECTORY)
string(APPEND ONEBIT_CUBLAS_PATH /libcublasLt.so.${CUDAToolkit_VERSION_MAJOR})

# As on the CPU, the code chooses where products and sums are fused, never the compiler.
target_compile_options(onebit_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CUDA>:$<$<BOOL:${ONEBIT_WARNINGS_END}>:--Werror=all-warnings> --fmad=false -Xcompiler=-Wall,-Wextra,-Wshadow>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wno-unused-parameter,-ffp-contract=off>)
# tools/cuda_kernels.py reads the kernels' machine code, so nvcc must not compress it.
target_compile_options(onebit_warnings INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:--no-compress>)
# fmt does not detect that nvcc supports constexpr.
target_compile_definitions(onebit_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CUDA>:FMT_USE_CONSTEXPR=1>)

find_path(ONEBIT_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(ONEBIT_NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR})
set(ONEBIT_HAS_NCCL OFF)
if(ONEBIT_NCCL_INCLUDE AND ONEBIT_NCCL_LIBRARY)
  set(ONEBIT_HAS_NCCL ON)
  get_filename_component(ONEBIT_NCCL_PATH ${ONEBIT_NCCL_LIBRARY} DIRECTORY)
  string(APPEND ONEBIT_NCCL_PATH /libnccl.so.2)
endif()
message(NOTICE "onebit: CUDA ${CUDAToolkit_VERSION} for ${CMAKE_CUDA_ARCHITECTURES}, "
               "NCCL ${ONEBIT_HAS_NCCL}")
