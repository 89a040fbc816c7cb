// Saves the registers that a call preserves (System V ABI, x86-64) on the old stack.
#include "tests/emulated_cuda/fibre_switch.h"

extern "C" void emulated_cuda_switch_stack(void** save, void* to);
asm(R"(
.text
.globl emulated_cuda_switch_stack
.type emulated_cuda_switch_stack, @function
emulated_cuda_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size emulated_cuda_switch_stack, . - emulated_cuda_switch_stack
)");

namespace emulated_cuda {

void* fresh_stack(char* stack, size_t size_bytes, void (*entry)()) {
  constexpr int kRegisters = 6;
  auto** top = reinterpret_cast<void**>(stack + size_bytes);
  *--top = nullptr;  // instead of a caller's return address
  *--top = reinterpret_cast<void*>(entry);
  for (int i = 0; i < kRegisters; ++i) *--top = nullptr;
  return top;
}

void switch_stack(void** save, void* to) {
  emulated_cuda_switch_stack(save, to);
}

}  // namespace emulated_cuda
