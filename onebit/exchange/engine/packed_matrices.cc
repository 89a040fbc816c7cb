#include "onebit/exchange/engine/packed_matrices.h"

namespace onebit::engine {
namespace {

bool is_packed(const Parameter& parameter) {
  return parameter.storage_shape.rank() == 2 && !parameter.declaration.lookup;
}

}  // namespace

PackedMatrices::PackedMatrices(Context& context, const ParameterTable& table) {
  for (size_t i = 0; i < table.parameters().size(); ++i) {
    if (!is_packed(table.parameters()[i])) continue;
    const View matrix = table.compute_value(static_cast<int>(i));
    matrices_.emplace_back(context, matrix.raw(), matrix.size_bytes());
  }
}

void PackedMatrices::changed() {
  for (ConstantWeights& matrix : matrices_) matrix.changed();
}

int64_t PackedMatrices::bytes(const ParameterTable& table, DType compute) {
  constexpr int64_t kDirections = 2;
  int64_t elements = 0;
  for (const Parameter& parameter : table.parameters()) {
    if (is_packed(parameter)) elements += parameter.range.elements();
  }
  return kDirections * size_bytes_of(compute) * elements;
}

}  // namespace onebit::engine
