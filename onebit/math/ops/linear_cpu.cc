// Matrix products through oneDNN, in plain layouts, except for constant weights (linear.h). Large
// ones of bf16 are onebit's own where there is AMX (kernels/amx_product.h): oneDNN's are slower
// (docs/performance.md).
#include <algorithm>

#include "onebit/ground/base/error.h"
#include "onebit/math/device/onednn_stream.h"
#include "onebit/math/device/scratch.h"
#include "onebit/math/kernels/amx_product.h"
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

constexpr int64_t kElementBytes = sizeof(bf16);
// Strips of the left operand that stay in a core's second cache (2 MiB) for all columns, and the
// columns whose sums are kept there before they are stored.
constexpr int64_t kBlockRows = 256, kLeftBytes = int64_t{1} << 20, kBlockColumns = 256;
// The depth of one pass. Deeper results of f32 are added up in place.
constexpr int64_t kPassDepth = 2048;
constexpr int64_t kRightBytes = int64_t{16} << 20;

int64_t divided_up(int64_t count, int64_t by) {
  return (count + by - 1) / by;
}

AmxOperand left_operand(const MatrixProduct& p) {
  return {.first = p.a.data<bf16>(),
          .lines = p.m(),
          .depth = p.k(),
          .stride = p.a.extent(1),
          .lines_neighbour = p.a_transposed};
}

AmxOperand right_operand(const MatrixProduct& p) {
  return {.first = p.b.data<bf16>(),
          .lines = p.n(),
          .depth = p.k(),
          .stride = p.b.extent(1),
          .lines_neighbour = !p.b_transposed};
}

// Lines [line, line + lines) and [k, k + depth) of them.
AmxOperand part(AmxOperand a, int64_t line, int64_t lines, int64_t k, int64_t depth) {
  a.first += a.lines_neighbour ? k * a.stride + line : line * a.stride + k;
  a.lines = lines;
  a.depth = depth;
  return a;
}

// One pass: c (+)= some columns of the product over a part of its depth.
struct AmxPass {
  AmxOperand left, right;
  const float* bias;
  std::byte* c;  // of the first column
  int64_t c_row;
  bool is_bf16, add;

  int64_t depth() const { return amx_padded(left.depth); }
};

void pack_right(Context& context, const AmxPass& pass, bf16* to) {
  const int64_t strips = divided_up(pass.right.lines, kAmxStrip);
  context.parallel_for(strips, 1, [&](int64_t begin, int64_t end) {
    const int64_t line = begin * kAmxStrip;
    const int64_t lines = std::min(end * kAmxStrip, pass.right.lines) - line;
    amx_pack_right(part(pass.right, line, lines, 0, pass.right.depth), to + line * pass.depth());
  });
}

void run_pass(Context& context, const AmxPass& pass) {
  const int64_t rows = pass.left.lines, columns = pass.right.lines, depth = pass.depth();
  const auto right = context.scratch().take(amx_strip_elements(columns, depth) * kElementBytes);
  pack_right(context, pass, right.as<bf16>());
  const int64_t strips = divided_up(rows, kAmxStrip);
  const int64_t in_cache = std::clamp<int64_t>(kLeftBytes / (kAmxStrip * depth * kElementBytes), 1,
                                               kBlockRows / kAmxStrip);
  // Blocks of equal size, a multiple of the number of threads.
  const int64_t threads = context.threads();
  const int64_t rounds = divided_up(divided_up(strips, in_cache), threads);
  const int64_t block = divided_up(strips, rounds * threads);
  const int64_t blocks = divided_up(strips, block);
  const int64_t parts = std::min(blocks, threads);
  const int64_t left_bytes = block * kAmxStrip * depth * kElementBytes;
  const int64_t sums_bytes =
      amx_sums_elements(block * kAmxStrip, kBlockColumns) * int64_t{sizeof(float)};
  const auto own = context.scratch().take(parts * (left_bytes + sums_bytes));
  context.parallel_for(parts, 1, [&](int64_t first_part, int64_t last_part) {
    for (int64_t i = first_part; i < last_part; ++i) {
      std::byte* const memory = own.data() + i * (left_bytes + sums_bytes);
      auto* const left = reinterpret_cast<bf16*>(memory);
      auto* const sums = reinterpret_cast<float*>(memory + left_bytes);
      for (int64_t b = blocks * i / parts; b < blocks * (i + 1) / parts; ++b) {
        const int64_t row = b * block * kAmxStrip;
        const int64_t height = std::min(block * kAmxStrip, rows - row);
        amx_pack_left(part(pass.left, row, height, 0, pass.left.depth), left);
        for (int64_t column = 0; column < columns; column += kBlockColumns) {
          const int64_t width = std::min(kBlockColumns, columns - column);
          amx_block_product({.rows = height,
                             .columns = width,
                             .depth = depth,
                             .left = left,
                             .right = right.as<bf16>() + column * depth,
                             .sums = sums,
                             .bias = pass.bias == nullptr ? nullptr : pass.bias + column,
                             .c = pass.c + (row * pass.c_row + column) * (pass.is_bf16 ? 2 : 4),
                             .c_row = pass.c_row,
                             .is_bf16 = pass.is_bf16,
                             .add = pass.add});
        }
      }
    }
  });
}

// Whether amx_product() computes products of this size here. What it computes of a row depends on
// neither the other rows nor the number of threads.
bool has_amx_product(const MatrixProduct& p) {
  constexpr int64_t kFewestRows = 256;
  return p.a.dtype() == DType::kBF16 && p.m() >= kFewestRows && p.n() >= kAmxStrip &&
         p.k() >= kAmxStrip && has_amx_products();
}

void amx_product(Context& context, const MatrixProduct& p) {
  const AmxOperand left = left_operand(p), right = right_operand(p);
  const bool is_bf16 = p.c.dtype() == DType::kBF16;
  const int64_t pass_depth = is_bf16 ? p.k() : kPassDepth;
  const int64_t pass_columns =
      std::max(kBlockColumns, kRightBytes / kElementBytes / std::min(p.k(), pass_depth) /
                                  kBlockColumns * kBlockColumns);
  for (int64_t column = 0; column < p.n(); column += pass_columns) {
    const int64_t columns = std::min(pass_columns, p.n() - column);
    for (int64_t k = 0; k < p.k(); k += pass_depth) {
      const int64_t depth = std::min(pass_depth, p.k() - k);
      run_pass(context, {.left = part(left, 0, p.m(), k, depth),
                         .right = part(right, column, columns, k, depth),
                         .bias = p.bias.empty() || k > 0 ? nullptr : p.bias.data<float>() + column,
                         .c = static_cast<std::byte*>(p.c.raw()) + column * (is_bf16 ? 2 : 4),
                         .c_row = p.n(),
                         .is_bf16 = is_bf16,
                         .add = p.accumulate || k > 0});
    }
  }
}

void run(Context& context, const MatrixProduct& p) {
  OnednnStream& onednn = context.onednn();
  ONEBIT_INVARIANT(onednn.packed_weights().quantised(p.b.raw()) == nullptr);
  const bool packs = onednn.packed_weights().covers(p.b.raw());
  if (!packs && has_amx_product(p)) return amx_product(context, p);
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
