#include "onebit/ops/matmul_cpu.h"

#include "onebit/base/error.h"
#include "onebit/device/onednn_door.h"
#include "onebit/ops/cpu_ops.h"

namespace onebit::ops::cpu {
namespace {

using dnnl::memory;

memory::data_type onednn_type(DType dtype) {
  return dtype == DType::kBF16 ? memory::data_type::bf16 : memory::data_type::f32;
}

memory::desc matrix(int64_t rows, int64_t columns, DType dtype, bool transposed) {
  using tag = memory::format_tag;
  return {{rows, columns}, onednn_type(dtype), transposed ? tag::ba : tag::ab};
}

OnednnDoor::PrimitiveKey key_of(const Matmul& a) {
  const int64_t options =
      a.a_transposed | a.b_transposed << 1 | (a.bias != nullptr) << 2 | a.accumulate << 3;
  return {a.m, a.n, a.k, options, static_cast<int64_t>(a.operands), static_cast<int64_t>(a.result)};
}

PreparedPrimitive prepare(const dnnl::engine& engine, const Matmul& a) {
  const auto source = matrix(a.m, a.k, a.operands, a.a_transposed);
  const auto weights = matrix(a.k, a.n, a.operands, a.b_transposed);
  const auto destination = matrix(a.m, a.n, a.result, false);
  const auto bias = matrix(1, a.n, DType::kF32, false);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (a.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  const auto description = a.bias != nullptr
                               ? dnnl::matmul::desc(source, weights, bias, destination)
                               : dnnl::matmul::desc(source, weights, destination);
  const dnnl::matmul::primitive_desc plan(description, attributes, engine);
  PreparedPrimitive prepared;
  prepared.primitive = dnnl::matmul(plan);
  const auto without_memory = [&](const memory::desc& desc) {
    return memory(desc, engine, DNNL_MEMORY_NONE);
  };
  prepared.arguments = {{DNNL_ARG_SRC, without_memory(source)},
                        {DNNL_ARG_WEIGHTS, without_memory(weights)},
                        {DNNL_ARG_DST, without_memory(destination)},
                        {DNNL_ARG_SCRATCHPAD, without_memory(plan.scratchpad_desc())}};
  if (a.bias != nullptr) prepared.arguments.emplace(DNNL_ARG_BIAS, without_memory(bias));
  prepared.scratchpad_bytes = static_cast<int64_t>(plan.scratchpad_desc().get_size());
  return prepared;
}

void run(OnednnDoor& door, const Matmul& a) {
  PreparedPrimitive* prepared = door.find_primitive(key_of(a));
  if (prepared == nullptr) {
    prepared = &door.keep_primitive(key_of(a), prepare(door.engine(), a));
  }
  const auto scratchpad = door.scratch().take(prepared->scratchpad_bytes);
  const auto give = [&](int argument, const void* data) {
    prepared->arguments.at(argument).set_data_handle(const_cast<void*>(data));
  };
  give(DNNL_ARG_SRC, a.a);
  give(DNNL_ARG_WEIGHTS, a.b);
  give(DNNL_ARG_DST, a.c);
  give(DNNL_ARG_SCRATCHPAD, scratchpad.data());
  if (a.bias != nullptr) give(DNNL_ARG_BIAS, a.bias);
  prepared->primitive.execute(door.stream(), prepared->arguments);
  door.stream().wait();
}

ConstView flat(const void* data, DType dtype, int64_t elements) {
  return {data, dtype, {elements}, Device{}};
}
View flat(void* data, DType dtype, int64_t elements) {
  return {data, dtype, {elements}, Device{}};
}

void widen_and_run(Context& context, const Matmul& a) {
  Scratch& scratch = context.onednn().scratch();
  const auto wide_a = scratch.take(a.m * a.k * 4);
  const auto wide_b = scratch.take(a.k * a.n * 4);
  const bool rounds = a.result != DType::kF32;
  const auto wide_c = scratch.take(rounds ? a.m * a.n * 4 : 0);
  Matmul wide = a;
  wide.operands = wide.result = DType::kF32;
  wide.a = wide_a.data();
  wide.b = wide_b.data();
  if (rounds) wide.c = wide_c.data();
  const auto widen = [&](const void* from, DType dtype, std::byte* to, int64_t elements) {
    cast(context, {.from = flat(from, dtype, elements), .to = flat(to, DType::kF32, elements)});
  };
  widen(a.a, a.operands, wide_a.data(), a.m * a.k);
  widen(a.b, a.operands, wide_b.data(), a.k * a.n);
  if (rounds && a.accumulate) widen(a.c, a.result, wide_c.data(), a.m * a.n);
  run(context.onednn(), wide);
  if (rounds) {
    cast(context,
         {.from = flat(wide.c, DType::kF32, a.m * a.n), .to = flat(a.c, a.result, a.m * a.n)});
  }
}

}  // namespace

void matmul(Context& context, const Matmul& a) {
  if (a.m == 0 || a.n == 0) return;
  const bool native = a.operands == DType::kF32 ||
                      (a.operands == DType::kBF16 && context.onednn().has_native_bf16());
  try {
    if (native) {
      run(context.onednn(), a);
    } else {
      widen_and_run(context, a);
    }
  } catch (const dnnl::error& error) {
    fail("oneDNN cannot multiply [{}, {}] by [{}, {}] in {}: {}", a.m, a.k, a.k, a.n,
         name_of(a.operands), error.message);
  }
}

}  // namespace onebit::ops::cpu
