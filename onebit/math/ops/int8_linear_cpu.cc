// The products of int8_linear.h through oneDNN: plain sums of u8 * s8 in i32, without its scales
// and zero points, whose interfaces differ between its versions.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "onebit/ground/base/error.h"
#include "onebit/math/device/onednn_stream.h"
#include "onebit/math/device/scratch.h"
#include "onebit/math/ops/int8_linear.h"
#include "onebit/math/ops/int8_linear_rows.h"

namespace onebit::ops::cpu {

namespace {

using dnnl::memory;

struct Sizes {
  int64_t rows, in, out;
};

memory::desc plain(int64_t rows, int64_t columns, memory::data_type type) {
  return {{rows, columns}, type, memory::format_tag::ab};
}

// The rounded weight, [out, in].
memory::desc plain_weight(const Sizes& sizes) {
  return {{sizes.in, sizes.out}, memory::data_type::s8, memory::format_tag::ba};
}

// Products of other types have other types in their keys (linear_cpu.cc).
OnednnStream::PrimitiveKey key_of(const Sizes& sizes) {
  return {sizes.rows,
          sizes.out,
          sizes.in,
          0,
          static_cast<int64_t>(DType::kU8),
          static_cast<int64_t>(DType::kI32)};
}

PreparedPrimitive prepare(OnednnStream& onednn, const Sizes& sizes) {
  return onednn.prepare_product(
      {.source = plain(sizes.rows, sizes.in, memory::data_type::u8),
       .weights = {{sizes.in, sizes.out}, memory::data_type::s8, memory::format_tag::any},
       .destination = plain(sizes.rows, sizes.out, memory::data_type::s32)});
}

// `packed` has the layout that the primitive wants. sums = values . packed
void multiply(Context& context, PreparedPrimitive& prepared, const uint8_t* values,
              const void* packed, void* sums) {
  OnednnStream& onednn = context.onednn();
  const auto scratchpad = context.scratch().take(prepared.scratchpad_bytes);
  const auto give = [&](int argument, const void* data) {
    prepared.arguments.at(argument).set_data_handle(const_cast<void*>(data));
  };
  give(DNNL_ARG_SRC, values);
  give(DNNL_ARG_WEIGHTS, packed);
  give(DNNL_ARG_DST, sums);
  give(DNNL_ARG_SCRATCHPAD, scratchpad.data());
  prepared.primitive.execute(onednn.stream(), prepared.arguments);
  onednn.stream().wait();
}

// Whether sums of the largest products are exact. Instructions before VNNI add pairs of products in
// 16 bits, where such sums overflow.
bool sums_are_exact(Context& context) {
  constexpr Sizes kSizes{.rows = 64, .in = 256, .out = 64};
  OnednnStream& onednn = context.onednn();
  PreparedPrimitive prepared = prepare(onednn, kSizes);
  const std::vector<uint8_t> values(kSizes.rows * kSizes.in, 255);
  std::vector<int8_t> weight(kSizes.in * kSizes.out, 127);
  std::vector<int32_t> sums(kSizes.rows * kSizes.out);
  const memory::desc layout = prepared.arguments.at(DNNL_ARG_WEIGHTS).get_desc();
  memory from(plain_weight(kSizes), onednn.engine(), weight.data());
  memory packed(layout, onednn.engine());
  dnnl::reorder(from, packed).execute(onednn.stream(), from, packed);
  onednn.stream().wait();
  multiply(context, prepared, values.data(), packed.get_data_handle(), sums.data());
  return std::all_of(sums.begin(), sums.end(),
                     [&](int32_t sum) { return sum == 255 * 127 * kSizes.in; });
}

}  // namespace

std::string why_no_int8(Context& context) {
  if (!OnednnStream::has_native_int8()) {
    return fmt::format(
        "oneDNN multiplies with {} here, and int8 needs a processor with VNNI (AVX-512 VNNI, "
        "AVX-VNNI or AMX)",
        OnednnStream::instruction_set());
  }
  try {
    if (sums_are_exact(context)) return "";
  } catch (const dnnl::error& error) {
    return fmt::format("oneDNN has no such product: {}", error.message);
  }
  return "oneDNN's sums of int8 products overflow here";
}

bool quantise_constant_weight(Context& context, const PackConstantWeight& a) {
  const ConstView& weight = a.weight;
  // A head for a few labels: its results are the model's, and it costs nothing.
  constexpr int64_t kLeastOutputs = 32;
  // Sums of 255 * 127 stay below 2^31.
  constexpr int64_t kMostInputs = int64_t{1} << 16;
  // oneDNN chooses the layout by the sizes of a product. The usual number of rows is large.
  constexpr int64_t kRows = 256;
  const Sizes sizes{.rows = kRows, .in = weight.extent(1), .out = weight.extent(0)};
  if (sizes.out < kLeastOutputs || sizes.in > kMostInputs) return false;
  OnednnStream& onednn = context.onednn();
  const auto values = context.scratch().take(weight.elements());
  QuantisedColumns columns{.scales = Buffer(Device{}, sizes.out * 4),
                           .sums = Buffer(Device{}, sizes.out * 4)};
  quantise_weight(context, {.weight = a.values.data<float>(),
                            .rows = sizes.out,
                            .columns = sizes.in,
                            .values = values.as<int8_t>(),
                            .scales = reinterpret_cast<float*>(columns.scales.data()),
                            .sums = reinterpret_cast<int32_t*>(columns.sums.data())});
  const memory::desc layout = prepare(onednn, sizes).arguments.at(DNNL_ARG_WEIGHTS).get_desc();
  const auto* begin = static_cast<const std::byte*>(weight.raw());
  onednn.packed_weights().quantise(begin, begin + weight.size_bytes(),
                                   {.plain = plain_weight(sizes),
                                    .layout = layout,
                                    .values = values.data(),
                                    .columns = std::move(columns)},
                                   onednn.stream());
  return true;
}

void int8_linear(Context& context, const Int8Linear& a) {
  // Sums are turned into numbers while they are in a core's cache.
  constexpr int64_t kRowsOfThread = 64;
  OnednnStream& onednn = context.onednn();
  const int64_t rows = a.x.extent(0), in = a.x.extent(1), out = a.y.extent(1);
  const int64_t most = std::min(rows, kRowsOfThread * context.threads());
  const QuantisedColumns& columns = *onednn.packed_weights().quantised(a.weight.raw());
  const auto values = context.scratch().take(most * in);
  const auto scales = context.scratch().take(most * 4), zeros = context.scratch().take(most * 4);
  for (int64_t begin = 0; begin < rows; begin += most) {
    const int64_t count = std::min(most, rows - begin);
    const Sizes sizes{.rows = count, .in = in, .out = out};
    const View y = a.y.rows(begin, begin + count);
    quantise_input(context, {.x = a.x.data<float>() + begin * in,
                             .rows = count,
                             .columns = in,
                             .values = values.as<uint8_t>(),
                             .scales = scales.as<float>(),
                             .zeros = zeros.as<int32_t>()});
    const auto key = key_of(sizes);
    PreparedPrimitive* prepared = onednn.find_primitive(key);
    if (prepared == nullptr) prepared = &onednn.keep_primitive(key, prepare(onednn, sizes));
    const void* packed = onednn.packed_weights().packed(
        a.weight.raw(), plain_weight(sizes), prepared->arguments.at(DNNL_ARG_WEIGHTS).get_desc(),
        onednn.stream());
    multiply(context, *prepared, values.as<uint8_t>(), packed, y.raw());
    dequantise_sums(context,
                    {.y = y.data<float>(),
                     .rows = count,
                     .columns = out,
                     .scales = scales.as<float>(),
                     .zeros = zeros.as<int32_t>(),
                     .weight_scales = reinterpret_cast<const float*>(columns.scales.data()),
                     .weight_sums = reinterpret_cast<const int32_t*>(columns.sums.data()),
                     .bias = a.bias.empty() ? nullptr : a.bias.data<float>()});
    if (a.activation) activation(context, {.kind = *a.activation, .x = y, .y = y});
  }
}

}  // namespace onebit::ops::cpu
