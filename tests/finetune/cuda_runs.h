// Checks that a task trains on a CUDA device as on a CPU.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"
#include "onebit/math/device/memory.h"
#include "tests/finetune/metrics_lines.h"

namespace onebit::finetune {

// `options(name)` are a run's in a folder of this name, `run` is run_topic_training(). Checks
// that the losses of fifty steps are the CPU's, that two runs give the same bits in every type, and
// that a run can resume on the other kind of device.
template <typename OptionsOf, typename Run>
void expect_trains_on_cuda_as_on_a_cpu(const OptionsOf& options, const Run& run) {
  if (memory::cuda_device_count() == 0) GTEST_SKIP() << "no CUDA device here";
  struct Way {
    bool cuda = false;
    int64_t steps = 8;
    std::string type = {};
    bool resume = false;
    bool evaluates = false;
  };
  const auto train = [&](const std::string& name, const Way& way) {
    auto given = options(name);
    given.recipe.values["optimizer"] =
        parse_json(R"({"type": "AdamW", "params": {"lr": 3e-4, "weight_decay": 0.01}})", "o");
    given.recipe.values["run"] = {{"steps", way.steps}, {"checkpoint_every", 4}, {"seed", 3}};
    given.recipe.values["scheduler"]["params"]["total_num_steps"] = 50;
    if (!way.type.empty()) given.recipe.values[way.type]["enabled"] = true;
    given.resume = way.resume;
    if (!way.evaluates) given.dev.clear();
    comm::run_thread_world(1, [&](comm::Communicator& alone) {
      Context context = way.cuda ? Context::cuda(0) : Context::cpu(1);
      run(context, given, alone);
    });
    return given.output;
  };
  const auto expect_near = [](const Path& one, const Path& other, size_t steps) {
    const auto got = losses_in(one), wanted = losses_in(other);
    ASSERT_EQ(got.size(), steps);
    ASSERT_EQ(wanted.size(), steps);
    for (size_t step = 0; step < steps; ++step) {
      EXPECT_NEAR(got[step], wanted[step], 1e-4 * wanted[step]) << one << ", step " << step + 1;
    }
  };
  expect_near(train("on_cuda", {.cuda = true, .steps = 50}), train("on_cpu", {.steps = 50}), 50);
  for (const char* type : {"", "bf16", "fp16"}) {
    const Way way = {.cuda = true, .steps = 4, .type = type, .evaluates = true};
    const std::string name = std::string("once") + type;
    const Path once = train(name, way), again = train(name + "_again", way);
    EXPECT_EQ(losses_in(once), losses_in(again)) << type;
    const char* values = "global_step4/model/model.safetensors";
    EXPECT_TRUE(read_file(once / values) == read_file(again / values)) << type;
  }
  const Path whole = train("whole", {});
  for (const bool cuda_first : {false, true}) {
    const std::string name = cuda_first ? "from_cuda" : "from_cpu";
    train(name, {.cuda = cuda_first, .steps = 4});
    expect_near(train(name, {.cuda = !cuda_first, .resume = true}), whole, 8);
  }
}

}  // namespace onebit::finetune
