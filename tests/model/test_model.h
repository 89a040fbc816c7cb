// Weights, settings and comparisons shared by the tests of the models.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/math/model/config.h"
#include "onebit/math/tensor/parameter_table.h"

namespace onebit::model {

// Small enough for finite differences over every parameter.
EncoderConfig tiny_config(bool pre_layer_norm);

// The drawing of tools/make_model_goldens.py: a seed from a name, then uniform in [-1/2, 1/2).
uint32_t hash_of(std::string_view name);
double hashed(uint32_t seed, uint32_t element);

// Allocates `table` on the CPU and gives every parameter a value that depends on its name and
// element alone (tools/make_model_goldens.py draws the same): uniform in [-1/8, 1/8), norm gains
// around 1.
void fill_by_name(ParameterTable& table, DType compute);

using Gradients = std::map<std::string, std::vector<double>>;
Gradients gradients_of(const ParameterTable& table);
void clear_gradients(const ParameterTable& table);

double norm_of(const std::vector<double>& values);

// Fails for every tensor with |got - expected| > tolerance * |expected| in the Euclidean norm. The
// true gradient of a key bias is zero (softmax ignores a constant added to all scores), so its
// error is compared with the query bias of its layer.
void expect_close(const Gradients& got, const Gradients& expected, double tolerance);

// The same of all tensors together.
void expect_close_as_a_whole(const Gradients& got, const Gradients& expected, double tolerance);

// Fails unless both are equal bit for bit.
void expect_equal(const Gradients& got, const Gradients& expected);

}  // namespace onebit::model
