// What the first requests would pay for, paid before there are any.
#pragma once

#include <cstdint>

#include "onebit/program/serve/endpoints.h"

namespace onebit::serve {

// Asks the model for one text of each number of rows for which oneDNN makes other products
// (training::row_class), up to its longest text, at most 512 tokens: longer ones take so long that
// making products is not felt. Returns the number of texts. Errors: as of requests.
int64_t warm_up(Endpoints& endpoints);

}  // namespace onebit::serve
