// The codec's two implementations, behind sign_codec.h which has checked the arguments.
#pragma once

#include "onebit/compress/sign_codec.h"

namespace onebit::compress {

void encode_cpu(Context& context, const Encode& args);
void average_cpu(Context& context, const Average& args);
void decode_cpu(Context& context, const Decode& args);

// sign_codec_cuda.cu, or no_cuda_codec.cc.
void encode_cuda(Context& context, const Encode& args);
void average_cuda(Context& context, const Average& args);
void decode_cuda(Context& context, const Decode& args);

}  // namespace onebit::compress
