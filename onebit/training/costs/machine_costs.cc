#include "onebit/training/costs/machine_costs.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "onebit/exchange/comm/overlapped_exchange.h"
#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/exchange/one_bit/onebit_adam.h"
#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/machine.h"
#include "onebit/math/device/constant_weights.h"
#include "onebit/math/ops/int8_linear.h"
#include "onebit/math/ops/linear.h"
#include "onebit/math/tensor/tensor.h"
#include "onebit/training/costs/step_costs.h"

namespace onebit::costs {

namespace {

// Seconds of the fastest run. The first one is not counted: it compiles kernels and touches memory.
double fastest(Context& context, double seconds, const std::function<void()>& run) {
  run();
  context.synchronize();
  const Stopwatch spent;
  double best = 1e30;
  while (best > 1e29 || spent.seconds() < seconds) {
    const Stopwatch watch;
    run();
    context.synchronize();
    best = std::min(best, watch.seconds());
  }
  return best;
}

}  // namespace

namespace {

struct Product {
  static constexpr int64_t kRows = 1024, kIn = 768, kOut = 3072;

  Product(Context& context, DType type)
      : x(Tensor::zeros(context.device(), type, {kRows, kIn})),
        weight(Tensor::zeros(context.device(), type, {kOut, kIn})),
        y(Tensor::zeros(context.device(), type, {kRows, kOut})) {}

  double operations_per_second(Context& context, double seconds) const {
    const double best = fastest(context, seconds, [&] {
      ops::linear(context, {.x = x.view(), .weight = weight.view(), .bias = {}, .y = y.view()});
    });
    return 2.0 * kRows * kIn * kOut / best;
  }

  Tensor x, weight, y;
};

}  // namespace

double measure_product(Context& context, DType type, double seconds) {
  return Product(context, type).operations_per_second(context, seconds);
}

double measure_int8_product(Context& context, double seconds) {
  const Product product(context, DType::kF32);
  const View weight = product.weight.view();
  const ConstantWeights promise(context, weight.raw(), weight.size_bytes());
  ONEBIT_INVARIANT(ops::quantise_constant_weight(context, {.weight = weight, .values = weight}));
  return product.operations_per_second(context, seconds);
}

double measure_memory(Context& context, double seconds) {
  ONEBIT_INVARIANT(context.device().is_cpu());
  constexpr int64_t kElements = int64_t{1} << 24;  // 128 MiB each
  std::vector<double> from(kElements, 1.0), to(kElements, 0.0);
  const double best = fastest(context, seconds, [&] {
    context.parallel_for(kElements, int64_t{1} << 16, [&](int64_t begin, int64_t end) {
      std::memcpy(to.data() + begin, from.data() + begin,
                  static_cast<size_t>(end - begin) * sizeof(double));
    });
  });
  return 2.0 * kElements * sizeof(double) / best;
}

namespace {

constexpr const char* kKind = "onebit machine costs";
constexpr int64_t kVersion = 2;
constexpr double kPassSeconds = 3, kCopySeconds = 0.6;
constexpr int kRanks = 2;  // of a measured exchange
constexpr int64_t kMaxThreads = 1 << 16;

ComputingCosts measure_computing(Context& context, DType type) {
  const PassShape shape{.model = {.layers = 2}, .memory = {}, .sequences = 8};
  const ObservedPass pass = observe_pass(context, shape, type, kPassSeconds);
  Context exchanging = comm::exchange_context(context.device());
  const auto onebit =
      optim::measure_onebit_adam(exchanging, context, type, kSampledElements, kRanks);
  return {.forward = pass.work.forward / pass.seconds.forward,
          .backward = pass.work.backward() / pass.seconds.backward(),
          .update_seconds = measure_update(context, kSampledElements, type),
          .compressed_update_seconds = onebit.step_seconds};
}

ExchangingCosts measure_exchanging(Context& context) {
  ExchangingCosts costs;
  Context exchanging = comm::exchange_context(context.device());
  const double one_bit_passes =
      optim::measure_onebit_adam(exchanging, context, DType::kF32, kSampledElements, kRanks)
          .bucket_seconds;
  comm::run_thread_world(kRanks, [&](comm::Communicator& communicator) {
    Context own = comm::exchange_context(communicator.device());
    const comm::Buckets buckets(kSampledElements, int64_t{4} << 20);
    const auto elements = static_cast<double>(buckets.max_elements());
    const auto packing = [&](DType wire) {
      return measure_packing(own, buckets, 0, wire, communicator) / elements;
    };
    const ExchangingCosts measured{
        .f32 = packing(DType::kF32),
        .bf16 = packing(DType::kBF16),
        .f16 = packing(DType::kF16),
        .one_bit = measure_compressing(own, buckets, 0, communicator) / elements,
        .one_bit_passes = one_bit_passes};
    if (communicator.rank() == 0) costs = measured;
  });
  return costs;
}

Json to_json(const ByKind& rates) {
  return {{"products_flops_per_second", rates.products},
          {"attention_flops_per_second", rates.attention},
          {"rest_bytes_per_second", rates.rest}};
}

Json to_json(const ComputingCosts& costs) {
  return {{"forward", to_json(costs.forward)},
          {"backward", to_json(costs.backward)},
          {"adam_seconds_per_element", costs.update_seconds},
          {"onebit_adam_seconds_per_element", costs.compressed_update_seconds}};
}

Json to_json(const ExchangingCosts& costs) {
  return {{"f32_seconds_per_element", costs.f32},
          {"bf16_seconds_per_element", costs.bf16},
          {"f16_seconds_per_element", costs.f16},
          {"one_bit_seconds_per_element", costs.one_bit},
          {"one_bit_passes_seconds_per_element", costs.one_bit_passes}};
}

constexpr const char* kFix = "write the file again with `onebit doctor --output FILE`";

double positive(JsonReader& section, const char* key) {
  require(section.has(key), "{} is missing: {}", section.place(key), kFix);
  const double value = section.number(key, 0);
  require(std::isfinite(value) && value > 0, "{} is {}, and must be above 0: {}",
          section.place(key), value, kFix);
  return value;
}

int64_t whole(JsonReader& section, const char* key, int64_t most) {
  require(section.has(key), "{} is missing: {}", section.place(key), kFix);
  const int64_t value = section.integer(key, 0);
  require(1 <= value && value <= most, "{} is {}, and must be 1 to {}: {}", section.place(key),
          value, most, kFix);
  return value;
}

JsonReader part(JsonReader& section, const char* key) {
  require(section.has(key), "{} is missing: {}", section.place(key), kFix);
  return section.object(key);
}

ByKind read_rates(JsonReader section) {
  const ByKind rates{.products = positive(section, "products_flops_per_second"),
                     .attention = positive(section, "attention_flops_per_second"),
                     .rest = positive(section, "rest_bytes_per_second")};
  section.finish();
  return rates;
}

ComputingCosts read_computing(JsonReader section) {
  const ComputingCosts costs{
      .forward = read_rates(part(section, "forward")),
      .backward = read_rates(part(section, "backward")),
      .update_seconds = positive(section, "adam_seconds_per_element"),
      .compressed_update_seconds = positive(section, "onebit_adam_seconds_per_element")};
  section.finish();
  return costs;
}

ExchangingCosts read_exchanging(JsonReader section) {
  const ExchangingCosts costs{
      .f32 = positive(section, "f32_seconds_per_element"),
      .bf16 = positive(section, "bf16_seconds_per_element"),
      .f16 = positive(section, "f16_seconds_per_element"),
      .one_bit = positive(section, "one_bit_seconds_per_element"),
      .one_bit_passes = positive(section, "one_bit_passes_seconds_per_element")};
  section.finish();
  return costs;
}

}  // namespace

MachineCosts measure_machine_costs(Context& context) {
  const Machine machine = read_machine();
  MachineCosts costs{.host = host_name(),
                     .processor = machine.processor,
                     .threads = context.threads(),
                     .memory_bytes = machine.memory_bytes,
                     .copy_bytes_per_second = measure_memory(context, kCopySeconds),
                     .f32 = measure_computing(context, DType::kF32),
                     .bf16 = std::nullopt,
                     .exchanging = measure_exchanging(context)};
  if (machine.limit_bytes > 0) {
    costs.memory_bytes = std::min(costs.memory_bytes, machine.limit_bytes);
  }
  if (ops::bf16_is_native(context)) {
    costs.bf16 = measure_computing(context, DType::kBF16);
    costs.bf16_gains_from_copies = ops::bf16_gains_from_copies(context);
  }
  return costs;
}

Json to_json(const MachineCosts& costs) {
  Json json = {{"kind", kKind},
               {"version", kVersion},
               {"host", costs.host},
               {"processor", costs.processor},
               {"threads", costs.threads},
               {"memory_bytes", costs.memory_bytes},
               {"copy_bytes_per_second", costs.copy_bytes_per_second},
               {"f32", to_json(costs.f32)},
               {"exchanging", to_json(costs.exchanging)}};
  if (costs.bf16) json["bf16"] = to_json(*costs.bf16);
  if (!costs.bf16_gains_from_copies) json["bf16_gains_from_copies"] = false;
  return json;
}

MachineCosts read_machine_costs(const Path& path) {
  const Json json =
      parse_json(read_given_file(path, {"a measurement", uint64_t{16} << 20}), path.string());
  const bool is_ours = json.is_object() && json.value("kind", Json()) == kKind;
  require(is_ours, "{}: is not a machine measurement: {}", path.string(), kFix);
  require(json.value("version", Json()) == kVersion,
          "{}: was written by another version of onebit: {}", path.string(), kFix);
  JsonReader reader(json, path.string(), "");
  reader.accept("kind");
  reader.accept("version");
  MachineCosts costs{.host = reader.text("host", ""),
                     .processor = reader.text("processor", ""),
                     .threads = static_cast<int>(whole(reader, "threads", kMaxThreads)),
                     .memory_bytes = whole(reader, "memory_bytes", INT64_MAX),
                     .copy_bytes_per_second = positive(reader, "copy_bytes_per_second"),
                     .f32 = read_computing(part(reader, "f32")),
                     .bf16 = std::nullopt,
                     .exchanging = read_exchanging(part(reader, "exchanging"))};
  if (reader.has("bf16")) costs.bf16 = read_computing(reader.object("bf16"));
  costs.bf16_gains_from_copies = reader.boolean("bf16_gains_from_copies", true);
  reader.finish();
  return costs;
}

void write_machine_costs(const Path& path, const MachineCosts& costs) {
  write_file_atomically(path, json_text(to_json(costs), 2) + "\n");
}

}  // namespace onebit::costs
