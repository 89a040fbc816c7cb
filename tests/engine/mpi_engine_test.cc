// A whole engine on ranks that are processes gives the bits of ranks that are threads.
#include <gtest/gtest.h>

#include <array>
#include <mutex>

#include "onebit/exchange/comm/thread_communicator.h"
#include "tests/engine/toy_model.h"
#include "tests/transport/mpi_environment.h"

namespace onebit::engine {
namespace {

// The compressed phase of 1-bit Adam measures the noise in its first nine updates, and uses the
// measurement in the following seven.
constexpr int kSteps = 26;

struct Trace {
  std::vector<double> losses;
  std::vector<float> values;
  bool operator==(const Trace&) const = default;
};

Trace train(const EngineConfig& config, comm::Communicator& communicator) {
  ToyRun run(config, communicator);
  Trace trace;
  for (int step = 0; step < kSteps; ++step) trace.losses.push_back(run.step());
  run.engine().with_common_values([&] { trace.values = run.values(); });
  return trace;
}

TEST(MpiEngine, TrainsToTheBitsOfThreads) {
  ONEBIT_SKIP_WITHOUT_MPIRUN();
  comm::Communicator& world = *mpi_tests::mpi_world();
  const std::string one_bit =
      R"({"type": "OneBitAdam", "params": {"lr": 1e-3, "freeze_step": 10}})";
  // The last step is a local one.
  const std::string zero_one =
      R"({"type": "ZeroOneAdam", "params": {"lr": 1e-3, "var_freeze_step": 8,
          "var_update_scaler": 3, "local_step_scaler": 3, "local_step_clipper": 4}})";
  const std::array<std::string, 3> cases[] = {
      {R"({"type": "AdamW", "params": {"lr": 1e-3}})", R"(, "communication_data_type": "bf16")"},
      {R"({"type": "Lamb", "params": {"lr": 1e-2}})", R"(, "gradient_clipping": 0.1)"},
      {one_bit},
      {one_bit, R"(, "gradient_clipping": 0.1)"},
      {one_bit, R"(, "gradient_clipping": 0.1)", R"(, "clip": "exact")"},
      {R"({"type": "OneBitLamb", "params": {"lr": 1e-2, "freeze_step": 10}})"},
      {zero_one},
      {zero_one, R"(, "gradient_clipping": 0.1)"}};
  for (const auto& [optimizer, more, more_run] : cases) {
    const EngineConfig config = toy_config(optimizer, 12, 1, more, more_run);
    const Trace processes = train(config, world);
    std::mutex mutex;
    std::vector<Trace> threads;
    comm::run_thread_world(world.world_size(), [&](comm::Communicator& communicator) {
      Trace trace = train(config, communicator);
      const std::lock_guard lock(mutex);
      threads.push_back(std::move(trace));
    });
    for (const Trace& trace : threads) EXPECT_EQ(trace, processes) << optimizer << more << more_run;
  }
}

}  // namespace
}  // namespace onebit::engine
