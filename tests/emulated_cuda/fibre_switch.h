// Switches stacks: fibre_switch_x86_64.cc, on other processors fibre_switch_ucontext.cc.
#pragma once

#include <cstddef>

namespace emulated_cuda {

// Returns the pointer to switch to in order to run `entry`, which must not return, on a new stack.
void* fresh_stack(char* stack, size_t size_bytes, void (*entry)());
// Stores the pointer of the current stack in *save and switches to the other one.
void switch_stack(void** save, void* to);

}  // namespace emulated_cuda
