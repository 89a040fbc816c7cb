// The key with which clients show that they may use the models.
#pragma once

#include <string_view>

#include "onebit/program/serve/http_message.h"

namespace onebit::serve {

// Whether a request has the header "Authorization: Bearer KEY" with this key, which is not empty.
// Its scheme may have any case (RFC 9110, 11.1). The time does not depend on where keys differ.
bool has_key(const HttpRequest& request, std::string_view key);

}  // namespace onebit::serve
