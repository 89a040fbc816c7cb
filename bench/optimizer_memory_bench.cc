// The memory of an optimizer in bytes per parameter and rank, by number of ranks: the reported
// reservation, and the growth of the process after some steps, including the transport's messages.
//   optimizer_memory_bench [--elements 4194304]
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/exchange/engine/optimizer_list.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/metrics/text_table.h"

namespace {

using namespace onebit;

constexpr int kSteps = 12;
constexpr int64_t kRow = 1024;

struct Measured {
  double reserved = 0, grown = 0, checkpoint = 0;
};

double resident_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  long long total = 0, resident = 0;
  if (file == nullptr || std::fscanf(file, "%lld %lld", &total, &resident) != 2) return 0;
  std::fclose(file);
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

void train(const optim::OptimizerRecipe& recipe, int64_t elements, comm::Communicator& communicator,
           Measured& measured) {
  Context context = Context::cpu(1);
  ParameterTable table;
  table.add({.name = "matrix", .shape = {elements / kRow, kRow}, .decay = true});
  table.allocate(Device{}, DType::kF32);
  float* gradients = table.gradients().data<float>();
  for (int64_t i = 0; i < elements; ++i) gradients[i] = 1e-3f * static_cast<float>(i % 7 + 1);
  communicator.barrier();
  const double before = resident_bytes();
  communicator.barrier();
  const auto optimizer = recipe.make(table, communicator, {});
  for (int step = 1; step <= kSteps; ++step) {
    optimizer->step(context, table, {.step = step, .learning_rate = 1e-3});
  }
  communicator.barrier();
  if (communicator.rank() == 0) {
    const double parameters = static_cast<double>(elements) * communicator.world_size();
    const double whole = static_cast<double>(elements);
    measured = {
        .reserved = static_cast<double>(optimizer->state_bytes()) / whole,
        .grown = (resident_bytes() - before) / parameters,
        .checkpoint = static_cast<double>(optimizer->saved_bytes(optimizer->phase())) / whole};
  }
  communicator.barrier();
}

// Measures in a new process, so that earlier allocations cannot be reused.
Measured measure(const std::string& optimizer, int64_t elements, int ranks) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    const Keys keys(parse_json(optimizer, "bench"), "bench", "optimizer");
    const auto recipe = engine::read_optimizer(keys);
    Measured measured;
    comm::run_thread_world(ranks, [&](comm::Communicator& communicator) {
      train(*recipe, elements, communicator, measured);
    });
    const bool wrote = write(ends[1], &measured, sizeof measured) == sizeof measured;
    _exit(wrote ? 0 : 1);
  }
  Measured measured;
  if (read(ends[0], &measured, sizeof measured) != sizeof measured) measured = {};
  close(ends[0]);
  close(ends[1]);
  waitpid(child, nullptr, 0);
  return measured;
}

}  // namespace

int main(int count, char** arguments) {
  CLI::App app("Bytes a parameter of each optimizer");
  int64_t elements = int64_t{1} << 22;
  app.add_option("--elements", elements)->check(CLI::Range(kRow, int64_t{1} << 32));
  CLI11_PARSE(app, count, arguments);
  elements -= elements % kRow;
  const std::vector<std::pair<std::string, std::string>> optimizers = {
      {"AdamW", R"({"type": "AdamW"})"},
      {"Lamb", R"({"type": "Lamb"})"},
      {"OneBitAdam, warm-up", R"({"type": "OneBitAdam"})"},
      {"OneBitAdam", R"({"type": "OneBitAdam", "params": {"freeze_step": 4}})"},
      {"OneBitLamb", R"({"type": "OneBitLamb", "params": {"freeze_step": 4}})"},
      {"ZeroOneAdam", R"({"type": "ZeroOneAdam", "params": {"var_freeze_step": 6,
          "var_update_scaler": 4, "local_step_scaler": 2, "local_step_clipper": 4}})"}};
  metrics::TextTable table;
  table.add_row({"optimizer", "ranks", "reserved", "measured", "checkpoint"});
  for (const auto& [name, text] : optimizers) {
    for (const int ranks : {1, 2, 4, 8}) {
      const Measured one = measure(text, elements, ranks);
      table.add_row({name, std::to_string(ranks), fmt::format("{:.2f}", one.reserved),
                     fmt::format("{:.2f}", one.grown), fmt::format("{:.2f}", one.checkpoint)});
    }
  }
  std::printf("%s\n", table.text(2).c_str());
  return 0;
}
