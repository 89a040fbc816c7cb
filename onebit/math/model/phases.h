// The phases of a pass in profiles (onebit/math/device/profile.h).
#pragma once

namespace onebit::model {

inline constexpr const char* kEmbeddingsForward = "embeddings forward";
inline constexpr const char* kEncoderForward = "encoder forward";
inline constexpr const char* kHeadsForward = "heads forward";
inline constexpr const char* kHeadsBackward = "heads backward";
inline constexpr const char* kEncoderBackward = "encoder backward";
inline constexpr const char* kEmbeddingsBackward = "embeddings backward";

}  // namespace onebit::model
