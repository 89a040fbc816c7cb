#include "onebit/math/ops/linear.h"
#include "tests/ops/backend_test.h"

namespace onebit::ops {
namespace {

class LinearNoBiasTest : public BackendTest {};

TEST_P(LinearNoBiasTest, LinearActivationIsLinearThenActivation) {
  const int64_t rows = 19, in = 24, out = 40;
  const Tensor x = upload(random(rows, in, 1)), weight = upload(random(out, in, 2, 0.125));
  for (const ActivationKind kind : {ActivationKind::kGeluErf, ActivationKind::kGeluTanh,
                                    ActivationKind::kRelu, ActivationKind::kSwish}) {
    SCOPED_TRACE(static_cast<int>(kind));
    const Tensor sums = zeros({rows, out}), y = zeros({rows, out});
    const Tensor wanted_sums = zeros({rows, out}), wanted = zeros({rows, out});
    linear_activation(context(), {.kind = kind,
                                  .x = x.view(),
                                  .weight = weight.view(),
                                  .bias = {},
                                  .pre_activation = sums.view(),
                                  .y = y.view()});
    linear(context(),
           {.x = x.view(), .weight = weight.view(), .bias = {}, .y = wanted_sums.view()});
    activation(context(), {.kind = kind, .x = wanted_sums.view(), .y = wanted.view()});
    EXPECT_EQ(bytes(sums), bytes(wanted_sums));
    EXPECT_EQ(bytes(y), bytes(wanted));
  }
}

ONEBIT_ON_EVERY_BACKEND(LinearNoBiasTest);

}  // namespace
}  // namespace onebit::ops
