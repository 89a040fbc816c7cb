// For processors without an assembly version. Ten times slower, as each switch is a system call.
#include <ucontext.h>

#include <new>

#include "tests/emulated_cuda/fibre_switch.h"

namespace emulated_cuda {

void* fresh_stack(char* stack, size_t size_bytes, void (*entry)()) {
  const size_t kept = (sizeof(ucontext_t) + 63) / 64 * 64;
  auto* context = new (stack + size_bytes - kept) ucontext_t;
  getcontext(context);
  context->uc_stack.ss_sp = stack;
  context->uc_stack.ss_size = size_bytes - kept;
  context->uc_link = nullptr;
  makecontext(context, entry, 0);
  return context;
}

void switch_stack(void** save, void* to) {
  ucontext_t mine;
  *save = &mine;
  swapcontext(&mine, static_cast<ucontext_t*>(to));
}

}  // namespace emulated_cuda
