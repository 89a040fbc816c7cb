// The costs of the parts of a training step on one machine, independent of the model: measured in a
// few seconds and kept in a file, so that a plan can be made on another machine (`onebit doctor
// --output`, `onebit plan --measured`).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "onebit/ground/base/dtype.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json_fwd.h"
#include "onebit/math/device/context.h"
#include "onebit/training/costs/observed_pass.h"

namespace onebit::costs {

// The speed of this machine in a short measurement: the ceiling to which training is compared.

// Operations per second (a multiplication and an addition are two) of the product of a feed-forward
// layer of bert-base, [1024, 768] . [768, 3072], with operands of `type`: the fastest of the runs
// that fit into `seconds`.
double measure_product(Context& context, DType type, double seconds);

// The same with operands rounded to 8 bits (ops/int8_linear.h), rounding included. The device must
// have such products.
double measure_int8_product(Context& context, double seconds);

// Bytes per second, read and written, of copying buffers far larger than caches with all threads of
// the context: the fastest of the runs that fit into `seconds`. CPU contexts only.
double measure_memory(Context& context, double seconds);

// Costs with matrix products of one type, on all threads together.
struct ComputingCosts {
  // Rates reached in a pass: operations per second of products and of attention, bytes per second
  // of the rest.
  ByKind forward, backward;
  // Seconds per element of the passes over all parameters: Adam's (measure_update()), and 1-bit
  // Adam's in the compressed phase, after all buckets have arrived.
  double update_seconds = 0, compressed_update_seconds = 0;
};

// Seconds per element that an exchange of buckets takes on its single thread.
struct ExchangingCosts {
  double f32 = 0, bf16 = 0, f16 = 0;  // averaging, by the type on the wire
  double one_bit = 0;                 // coding
  double one_bit_passes = 0;          // 1-bit Adam's work on a bucket besides coding
};

struct MachineCosts {
  std::string host, processor;
  int threads = 1;                   // with which all figures were measured
  int64_t memory_bytes = 0;          // of the machine, or its control group's limit
  double copy_bytes_per_second = 0;  // read and written
  ComputingCosts f32;
  std::optional<ComputingCosts> bf16;  // where the processor multiplies bf16 itself
  bool bf16_gains_from_copies = true;  // ops::bf16_gains_from_copies(), if it does
  ExchangingCosts exchanging;
};

// Takes about six seconds per type. The pass is one of two layers of bert-base over 8 sequences of
// 128 tokens. Exchanges run between two ranks that are threads. CPU contexts only.
MachineCosts measure_machine_costs(Context& context);

Json to_json(const MachineCosts& costs);
// Errors: no such file, not written by write_machine_costs(), a figure that is not a positive
// number.
MachineCosts read_machine_costs(const Path& path);
void write_machine_costs(const Path& path, const MachineCosts& costs);

}  // namespace onebit::costs
