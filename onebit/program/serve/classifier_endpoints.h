// The endpoints of a model of its kind. See endpoints.h.
#pragma once

#include "onebit/program/serve/endpoints.h"

namespace onebit::serve {

std::unique_ptr<Endpoints> make_classifier_endpoints(Context& context, const Path& folder,
                                                     const EndpointOptions& options,
                                                     Metrics& metrics);

}  // namespace onebit::serve
