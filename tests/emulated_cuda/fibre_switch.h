// Switches stacks. x86-64 has fibre_switch_x86_64.cc, other processors fibre_switch_ucontext.cc.
#pragma once

#include <cstddef>

namespace emulated_cuda {

// Makes a stack and returns its pointer. `entry` runs after a switch to it, and must not return.
void* fresh_stack(char* stack, size_t size_bytes, void (*entry)());
// Stores the pointer of the current stack in *save and switches to the other one.
void switch_stack(void** save, void* to);

}  // namespace emulated_cuda
