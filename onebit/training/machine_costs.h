// What the parts of a training step cost on a machine, whatever the model: measured in some seconds
// and kept in a file, so that a plan can be made elsewhere (`onebit doctor --output`, `onebit plan
// --measured`).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "onebit/base/file.h"
#include "onebit/base/json_fwd.h"
#include "onebit/device/context.h"
#include "onebit/training/observed_pass.h"

namespace onebit::training {

// With matrix products of one type, all threads together.
struct ComputingCosts {
  // Reached in a pass: operations a second of products and of attention, bytes a second of the
  // rest.
  ByKind forward, backward;
  // Seconds for each element of the passes over all parameters: Adam's (measure_update()), and
  // 1-bit Adam's in the compressed phase, once all buckets have arrived.
  double update_seconds = 0, compressed_update_seconds = 0;
};

// Seconds for each element that an exchange of buckets takes on the one thread that it has.
struct ExchangingCosts {
  double f32 = 0, bf16 = 0, f16 = 0;  // averages, by the type that travels
  double one_bit = 0;                 // coding
  double one_bit_passes = 0;          // 1-bit Adam's work on a bucket besides coding
};

struct MachineCosts {
  std::string host, processor;
  int threads = 1;                 // all figures are of so many at once
  int64_t memory_bytes = 0;        // of the machine, or what its control group allows
  double copy_bytes_a_second = 0;  // read and written
  ComputingCosts f32;
  std::optional<ComputingCosts> bf16;  // where the processor multiplies bf16 itself
  ExchangingCosts exchanging;
};

// Takes about six seconds a type. The pass is one of two layers of bert-base over 8 sequences of
// 128 tokens; exchanges are between two ranks that are threads. CPU contexts only.
MachineCosts measure_machine_costs(Context& context);

Json to_json(const MachineCosts& costs);
// Error: no such file, not what write_machine_costs() has written, or a figure that is no positive
// number.
MachineCosts read_machine_costs(const Path& path);
void write_machine_costs(const Path& path, const MachineCosts& costs);

}  // namespace onebit::training
