// Changing stacks: fibre_switch_x86_64.cc, elsewhere fibre_switch_ucontext.cc.
#pragma once

#include <cstddef>

namespace emulated_cuda {

// The pointer to switch to for `entry` to run on a fresh stack; it must not return.
void* fresh_stack(char* stack, size_t size_bytes, void (*entry)());
// Leaves this stack, whose pointer is stored in *save, for the other one.
void switch_stack(void** save, void* to);

}  // namespace emulated_cuda
