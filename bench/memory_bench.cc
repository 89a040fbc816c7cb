// The largest micro-batch of BERT-large that fits into 16 and 32 GB, by memory option, for
// sequences of 384 and 512 tokens. The heads are pre-training's at both lengths, although no
// masked words are predicted at 384. Computed by the code that reserves the memory. Needs no
// device.
//   memory_bench [--preset bert-large] [--compute bf16]
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "onebit/ground/metrics/text_table.h"
#include "onebit/math/model/memory_report.h"

namespace {

using namespace onebit;

// Memory that is not the model's: two f32 moments per element, cuBLASLt's workspace, the CUDA
// context.
constexpr int64_t kMomentBytes = 8, kDriverBytes = int64_t{600} << 20;

int64_t bytes_of(const model::EncoderConfig& config, int64_t batch, int64_t tokens,
                 const model::MemoryOptions& options, DType compute) {
  const int64_t masked = tokens * 15 / 100;
  const auto rows = model::memory_report(
      config,
      {.rows = batch * tokens, .sequences = batch, .longest = tokens, .labelled = batch * masked},
      options, compute, model::PreTrainingHeads::kBoth, DeviceType::kCuda);
  int64_t elements = 0;
  for (const auto& row : rows) {
    if (row.name == "values") elements = row.bytes / 4;
  }
  // The gradient of the embeddings' sum is f32 scratch of the backward pass.
  const int64_t scratch = batch * tokens * config.hidden_size * 4;
  return model::total_bytes(rows) + elements * kMomentBytes + scratch + kDriverBytes;
}

int64_t largest_batch(const model::EncoderConfig& config, int64_t tokens,
                      const model::MemoryOptions& options, DType compute, int64_t budget_bytes) {
  int64_t batch = 0;
  while (bytes_of(config, batch + 1, tokens, options, compute) <= budget_bytes) ++batch;
  return batch;
}

}  // namespace

int main(int count, char** arguments) {
  CLI::App app("Micro-batches that fit");
  std::string preset = "bert-large", compute = "bf16";
  app.add_option("--preset", preset);
  app.add_option("--compute", compute)->check(CLI::IsMember({"bf16", "f32"}));
  CLI11_PARSE(app, count, arguments);
  const model::EncoderConfig config = model::preset(preset);
  const DType type = compute == "bf16" ? DType::kBF16 : DType::kF32;
  struct Choice {
    const char* name;
    model::MemoryOptions options;
  };
  const std::vector<Choice> choices = {
      {"none", {}},
      {"gelu_checkpoint", {.gelu_checkpoint = true}},
      {"normalize_invertible", {.normalize_invertible = true}},
      {"both", {.gelu_checkpoint = true, .normalize_invertible = true}},
      {"full_recomputation", {.full_recomputation = true}}};
  metrics::TextTable table;
  table.add_row({"options", "384, 16 GB", "384, 32 GB", "512, 16 GB", "512, 32 GB"});
  for (const Choice& choice : choices) {
    std::vector<std::string> row{choice.name};
    for (const int64_t tokens : {384, 512}) {
      for (const int64_t gigabytes : {16, 32}) {
        row.push_back(
            std::to_string(largest_batch(config, tokens, choice.options, type, gigabytes << 30)));
      }
    }
    table.add_row(row);
  }
  std::printf("%s\n", table.text(2).c_str());
  return 0;
}
