#include "onebit/training/costs/machine_check.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace onebit::costs {
namespace {

TEST(ProgramFacts, ComeFromTheContextAndTheEnvironment) {
  setenv("OMP_NUM_THREADS", "3,2", 1);
  setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
  Context context = Context::cpu(2);
  ProgramFacts program = program_facts(context);
  EXPECT_EQ(program.threads, 2);
  EXPECT_EQ(program.openmp_threads, 3);
  EXPECT_EQ(program.onednn_limit, "AVX2");
  EXPECT_EQ(program.f32, 0);
  setenv("ONEDNN_MAX_CPU_ISA", "ALL", 1);
  unsetenv("OMP_NUM_THREADS");
  program = program_facts(context);
  EXPECT_EQ(program.onednn_limit, "");
  EXPECT_FALSE(program.openmp_threads.has_value());
  measure_speed(context, program);
  EXPECT_GT(program.f32, 1e6);
  EXPECT_GT(program.memory, 1e6);
  EXPECT_EQ(program.bf16 > 0, program.native_bf16);
}

}  // namespace
}  // namespace onebit::costs
