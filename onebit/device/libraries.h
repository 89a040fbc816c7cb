// Versions and capabilities of the vendor libraries, for reports.
#pragma once

#include <string>

namespace onebit {

std::string onednn_version();  // "2.6.3"
// "avx2", "avx512_core_bf16"...: what oneDNN computes with on this processor.
std::string onednn_instruction_set();
// Of the CUDA runtime that is built in, as CUDA writes it: 12020 is 12.2. 0: none is.
int cuda_version();

}  // namespace onebit
