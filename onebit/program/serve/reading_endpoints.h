// The endpoints of models that read one text at a time: taggers, models that answer questions, and
// models that fill in masked words. See endpoints.h.
#pragma once

#include "onebit/program/serve/endpoints.h"

namespace onebit::serve {

std::unique_ptr<Endpoints> make_tagger_endpoints(Context& context, const Path& folder,
                                                 const EndpointOptions& options, Metrics& metrics);
std::unique_ptr<Endpoints> make_answer_endpoints(Context& context, const Path& folder,
                                                 const EndpointOptions& options, Metrics& metrics);
std::unique_ptr<Endpoints> make_fill_endpoints(Context& context, const Path& folder,
                                               const EndpointOptions& options, Metrics& metrics);

}  // namespace onebit::serve
