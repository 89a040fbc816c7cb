// The words for the options of a conversion, on the command line and from Python.
#pragma once

#include <map>
#include <string>

#include "onebit/program/convert/convert.h"

namespace onebit::convert {

inline const std::map<std::string, formats::CheckpointKind> kKinds = {
    {"safetensors", formats::CheckpointKind::kSafetensors},
    {"torch", formats::CheckpointKind::kTorch},
    {"tensorflow", formats::CheckpointKind::kTensorBundle},
    {"deepspeed", formats::CheckpointKind::kDeepSpeed}};
inline const std::map<std::string, formats::Naming> kNamings = {
    {"huggingface", formats::Naming::kHuggingFace},
    {"plain", formats::Naming::kPlain},
    {"fused", formats::Naming::kFused},
    {"google", formats::Naming::kGoogle}};
inline const std::map<std::string, ChosenActivation> kActivations = {
    {"gelu", ChosenActivation::kGeluErf}, {"gelu_new", ChosenActivation::kGeluTanh}};
inline const std::map<std::string, DType> kTypes = {
    {"f32", DType::kF32}, {"bf16", DType::kBF16}, {"f16", DType::kF16}};

}  // namespace onebit::convert
