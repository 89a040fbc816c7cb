// Versions and capabilities of the vendor libraries, for reports.
#pragma once

#include <string>

namespace onebit {

std::string onednn_version();  // "2.6.3"
// The instruction set that oneDNN uses on this processor: "avx2", "avx512_core_bf16"...
std::string onednn_instruction_set();
bool onednn_uses_tiles();  // of AMX
// The version of the CUDA runtime of this build in CUDA's encoding: 12020 is 12.2, or 0 without
// CUDA.
int cuda_version();

}  // namespace onebit
