#include "onebit/math/device/cuda_check.h"

#include "onebit/math/device/memory.h"

namespace onebit {

bool means_no_device_code(cudaError_t status) {
  switch (status) {
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorInvalidKernelImage:
    case cudaErrorInvalidPtx:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
      return true;
    default:
      return false;
  }
}

std::string_view cuda_advice(cudaError_t status) {
  if (means_no_device_code(status)) {
    return "this onebit has no code for the device: build it with -DCMAKE_CUDA_ARCHITECTURES=NN, "
           "where N.N is the device's compute capability, or use --device cpu";
  }
  switch (status) {
    case cudaErrorMemoryAllocation:
      return memory::kOutOfMemoryAdvice;
    case cudaErrorInvalidValue:
    case cudaErrorInvalidConfiguration:
    case cudaErrorLaunchOutOfResources:
      return "the device does not accept these sizes: use smaller ones, and report this message";
    case cudaErrorDevicesUnavailable:
      return "another process has the device for itself: see nvidia-smi (compute mode, processes)";
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorSystemNotReady:
    case cudaErrorInitializationError:
    case cudaErrorNoDevice:
      return "check the driver with nvidia-smi";
    case cudaErrorECCUncorrectable:
    case cudaErrorHardwareStackError:
      return "the device has a fault: see nvidia-smi -q -d ECC and the system's log, and use "
             "another device (CUDA_VISIBLE_DEVICES)";
    case cudaErrorLaunchTimeout:
      return "the device also drives a display, which ends long kernels: use a smaller micro-batch "
             "or another device (CUDA_VISIBLE_DEVICES)";
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorAssert:
    case cudaErrorLaunchFailure:
      return "run compute-sanitizer on the same command to find the kernel";
    default:
      return "";
  }
}

void fail_cuda(cudaError_t status, const char* call) {
  const std::string_view advice = cuda_advice(status);
  fail("{}: {} ({}){}{}", call, cudaGetErrorString(status), cudaGetErrorName(status),
       advice.empty() ? "" : "; ", advice);
}

}  // namespace onebit
