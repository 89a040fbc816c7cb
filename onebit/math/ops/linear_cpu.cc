// Matrix products through oneDNN, in plain layouts, except for constant weights (linear.h).
#include "onebit/ground/base/error.h"
#include "onebit/math/device/onednn_stream.h"
#include "onebit/math/device/scratch.h"
#include "onebit/math/kernels/matrix_product.h"
#include "onebit/math/ops/elementwise.h"
#include "onebit/math/ops/linear.h"

namespace onebit::ops::cpu {

using namespace kernels;

namespace {

using dnnl::memory;

memory::data_type onednn_type(DType dtype) {
  return dtype == DType::kBF16 ? memory::data_type::bf16 : memory::data_type::f32;
}

memory::desc matrix(int64_t rows, int64_t columns, DType dtype, bool transposed) {
  using tag = memory::format_tag;
  return {{rows, columns}, onednn_type(dtype), transposed ? tag::ba : tag::ab};
}

OnednnStream::PrimitiveKey key_of(const MatrixProduct& p, bool packs) {
  const int64_t options =
      p.a_transposed | p.b_transposed << 1 | !p.bias.empty() << 2 | p.accumulate << 3 | packs << 4;
  return {p.m(),
          p.n(),
          p.k(),
          options,
          static_cast<int64_t>(p.a.dtype()),
          static_cast<int64_t>(p.c.dtype())};
}

memory::desc plain_weights(const MatrixProduct& p) {
  return matrix(p.k(), p.n(), p.b.dtype(), p.b_transposed);
}

// `packs`: oneDNN chooses the layout of the weights.
PreparedPrimitive prepare(OnednnStream& onednn, const MatrixProduct& p, bool packs) {
  const auto source = matrix(p.m(), p.k(), p.a.dtype(), p.a_transposed);
  auto weights = plain_weights(p);
  if (packs) weights = {{p.k(), p.n()}, onednn_type(p.b.dtype()), memory::format_tag::any};
  const auto destination = matrix(p.m(), p.n(), p.c.dtype(), false);
  const auto bias = matrix(1, p.n(), DType::kF32, false);
  return onednn.prepare_product({.source = source,
                                 .weights = weights,
                                 .destination = destination,
                                 .bias = p.bias.empty() ? nullptr : &bias,
                                 .accumulate = p.accumulate});
}

const void* packed_weights(OnednnStream& onednn, const MatrixProduct& p,
                           const PreparedPrimitive& prepared) {
  const memory::desc plain = plain_weights(p);
  const memory::desc layout = prepared.arguments.at(DNNL_ARG_WEIGHTS).get_desc();
  return onednn.packed_weights().packed(p.b.raw(), plain, layout, onednn.stream());
}

void run(Context& context, const MatrixProduct& p) {
  OnednnStream& onednn = context.onednn();
  ONEBIT_INVARIANT(onednn.packed_weights().quantised(p.b.raw()) == nullptr);
  const bool packs = onednn.packed_weights().covers(p.b.raw());
  const auto key = key_of(p, packs);
  PreparedPrimitive* prepared = onednn.find_primitive(key);
  if (prepared == nullptr) {
    prepared = &onednn.keep_primitive(key, prepare(onednn, p, packs));
  }
  const auto scratchpad = context.scratch().take(prepared->scratchpad_bytes);
  const auto give = [&](int argument, const void* data) {
    prepared->arguments.at(argument).set_data_handle(const_cast<void*>(data));
  };
  give(DNNL_ARG_SRC, p.a.raw());
  give(DNNL_ARG_WEIGHTS, packs ? packed_weights(onednn, p, *prepared) : p.b.raw());
  give(DNNL_ARG_DST, p.c.raw());
  give(DNNL_ARG_SCRATCHPAD, scratchpad.data());
  if (!p.bias.empty()) give(DNNL_ARG_BIAS, p.bias.raw());
  prepared->primitive.execute(onednn.stream(), prepared->arguments);
  onednn.stream().wait();
}

// Whether this processor multiplies operands of the type without widening them.
bool multiplies(Context& context, DType operands) {
  return operands == DType::kF32 ||
         (operands == DType::kBF16 && context.onednn().has_native_bf16());
}

// Widens operands that this processor cannot multiply (see bf16_is_native) into f32 scratch and
// rounds the result afterwards.
void widen_and_run(Context& context, const MatrixProduct& p) {
  Scratch& scratch = context.scratch();
  const bool rounds = p.c.dtype() != DType::kF32;
  const auto wide_a = scratch.take(p.a.elements() * 4);
  const auto wide_b = scratch.take(p.b.elements() * 4);
  const auto wide_c = scratch.take(rounds ? p.c.elements() * 4 : 0);
  const auto widened = [](const Scratch::Block& to, const ConstView& from) {
    return View(to.data(), DType::kF32, from.shape(), Device{});
  };
  MatrixProduct wide = p;
  const auto widen = [&](const Scratch::Block& block, const ConstView& from) {
    const View to = widened(block, from);
    cast(context, {.from = from, .to = to});
    return to;
  };
  wide.a = widen(wide_a, p.a);
  wide.b = widen(wide_b, p.b);
  if (rounds) wide.c = p.accumulate ? widen(wide_c, p.c) : widened(wide_c, p.c);
  run(context, wide);
  if (rounds) cast(context, {.from = wide.c, .to = p.c});
}

}  // namespace

bool matrix_product(Context& context, const MatrixProduct& p) {
  ONEBIT_INVARIANT(p.epilogue == Epilogue::kNone || p.epilogue == Epilogue::kBias);
  if (p.m() == 0 || p.n() == 0) return true;
  const DType operands = p.a.dtype();
  const bool native = multiplies(context, operands);
  try {
    if (native) {
      run(context, p);
    } else {
      widen_and_run(context, p);
    }
  } catch (const dnnl::error& error) {
    fail("oneDNN cannot multiply [{}, {}] by [{}, {}] in {}: {}", p.m(), p.k(), p.k(), p.n(),
         name_of(operands), error.message);
  }
  return true;
}

bool pack_constant_weight(Context& context, const PackConstantWeight& a) {
  OnednnStream& onednn = context.onednn();
  const ConstView& weight = a.weight;
  if (!multiplies(context, weight.dtype()) || !onednn.packed_weights().covers(weight.raw())) {
    return false;
  }
  // oneDNN chooses the layout by the sizes of a product. The usual number of rows is large.
  constexpr int64_t kRows = 256;
  const MatrixProduct product{
      .a = ConstView(nullptr, weight.dtype(), {kRows, weight.extent(1)}, Device{}),
      .b = weight,
      .b_transposed = true,
      .c = View(nullptr, weight.dtype(), {kRows, weight.extent(0)}, Device{})};
  const memory::desc layout =
      prepare(onednn, product, true).arguments.at(DNNL_ARG_WEIGHTS).get_desc();
  if (!onednn.packed_weights().pack(weight.raw(), a.values.raw(), plain_weights(product), layout,
                                    onednn.stream())) {
    return false;
  }
  const auto* begin = static_cast<const std::byte*>(weight.raw());
  onednn.packed_weights().let_go(begin, begin + weight.size_bytes());
  return true;
}

bool bf16_is_native(Context& context) {
  return context.onednn().has_native_bf16();
}

}  // namespace onebit::ops::cpu
