#include "tests/muon/muon.h"

#include <algorithm>
#include <cmath>

#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/error.h"
#include "onebit/math/ops/reduce.h"

namespace onebit::muon {
namespace {

using optim::Phase;
using optim::StepInput;
using optim::StepReport;

// The number of updates between two computations of A and B.
constexpr int64_t kRefreshUpdates = 100;

bool is_matrix_of_a_layer(const ParameterEntry& entry) {
  return entry.shape.rank() == 2 && entry.name.find("encoder.layer.") != std::string::npos;
}

// The factor of an orthogonal matrix that makes the root mean square of its elements 0.2, which is
// about AdamW's.
float step_scale(const Shape& shape) {
  return 0.2f * std::sqrt(static_cast<float>(std::max(shape[0], shape[1])));
}

}  // namespace

Muon::Muon(const MuonOptions& options, std::unique_ptr<optim::Optimizer> others,
           const ParameterTable& table, comm::Communicator& communicator)
    : options_(options), others_(std::move(others)) {
  ONEBIT_INVARIANT(table.device().is_cpu() && table.compute_type() == DType::kF32);
  std::vector<int64_t> elements;
  for (const ParameterEntry& entry : table.entries()) {
    if (!is_matrix_of_a_layer(entry)) continue;
    elements.push_back(entry.shape.elements());
    matrices_.push_back({.entry = entry,
                         .newton_schulz = NewtonSchulz(entry.shape[0], entry.shape[1]),
                         .whitening = Whitening(entry.shape[0], entry.shape[1]),
                         .momentum = Tensor::zeros(Device{}, DType::kF32, entry.shape),
                         .direction = Tensor(Device{}, DType::kF32, entry.shape),
                         .value = Tensor(Device{}, DType::kF32, entry.shape)});
  }
  exchange_ = std::make_unique<MatrixExchange>(communicator, elements);
}

StepReport Muon::step(Context& context, ParameterTable& table, const StepInput& input) {
  const bool compressed = phase() == Phase::kCompressed;
  take_gradients(context, table, input);
  StepReport report = others_->step(context, table, input);
  const Stopwatch watch;
  for (const Matrix& matrix : matrices_) copy(table.value_of(matrix.entry), matrix.value.view());
  if (!report.applied) return report;
  if (options_.sends == Sends::kWhitened) {
    for (Matrix& matrix : matrices_) matrix.whitening.observe(context, matrix.direction.view());
    if (compressed) whiten(context);
  }
  if (compressed) {
    exchange(context);
  } else {
    for (Matrix& matrix : matrices_) {
      follow(matrix, matrix.direction.view(), options_.momentum);
      matrix.newton_schulz.run(context, matrix.direction.view());
    }
  }
  move(table, input);
  report.update_seconds += watch.seconds();
  return report;
}

void Muon::take_gradients(Context& context, ParameterTable& table, const StepInput& input) {
  const auto scale = static_cast<float>(input.gradient_scale);
  for (const Matrix& matrix : matrices_) {
    const View gradient = table.gradient_of(matrix.entry);
    require(ops::all_finite(context, gradient), "the gradient of {} is not finite",
            matrix.entry.name);
    float* const from = gradient.data<float>();
    float* const to = matrix.direction.data<float>();
    for (int64_t i = 0; i < gradient.elements(); ++i) to[i] = scale * from[i];
    std::fill_n(from, gradient.elements(), 0.0f);
    copy(matrix.value.view(), table.value_of(matrix.entry));
  }
}

void Muon::follow(const Matrix& matrix, View direction, double lead) const {
  const auto take = static_cast<float>(1 - options_.momentum), ahead = static_cast<float>(lead);
  float* const momentum = matrix.momentum.data<float>();
  float* const u = direction.data<float>();
  for (int64_t i = 0; i < direction.elements(); ++i) {
    const float change = take * (u[i] - momentum[i]);
    momentum[i] += change;
    u[i] = momentum[i] + ahead * change;
  }
}

// Whitens this update's gradients before they are sent.
void Muon::whiten(Context& context) {
  const bool refreshes = compressed_updates_ % kRefreshUpdates == 0;
  for (Matrix& matrix : matrices_) {
    if (refreshes) matrix.whitening.refresh(context);
    // Converts the momentum of gradients to one of y.
    if (compressed_updates_ == 0) matrix.whitening.apply(context, matrix.momentum.view());
    matrix.whitening.apply(context, matrix.direction.view());
  }
  ++compressed_updates_;
}

void Muon::exchange(Context& context) {
  std::vector<View> directions;
  for (Matrix& matrix : matrices_) directions.push_back(matrix.direction.view());
  exchange_->run(context, directions, [&](size_t i, View average) {
    Matrix& matrix = matrices_[i];
    follow(matrix, average, options_.lead);
    if (options_.sends == Sends::kWhitened) matrix.whitening.take_back(context, average);
    if (options_.sends != Sends::kMomentum) matrix.newton_schulz.run(context, average);
  });
  if (options_.sends != Sends::kMomentum) return;
  for (size_t i = 0; i < matrices_.size(); ++i) {
    matrices_[i].newton_schulz.run(context, directions[i]);
  }
}

void Muon::move(ParameterTable& table, const StepInput& input) const {
  const auto rate = static_cast<float>(input.learning_rate);
  const auto kept = static_cast<float>(1 - input.learning_rate * options_.weight_decay);
  for (const Matrix& matrix : matrices_) {
    const View value = table.value_of(matrix.entry);
    const float step = rate * step_scale(matrix.entry.shape);
    float* const values = value.data<float>();
    const float* const direction = matrix.direction.data<float>();
    for (int64_t i = 0; i < value.elements(); ++i) {
      values[i] = kept * values[i] - step * direction[i];
    }
  }
}

void Muon::load(Context&, ParameterTable&, const optim::StateReader&) {
  fail("a run of Muon's is not resumed");
}

std::vector<std::string> Muon::names() const {
  std::vector<std::string> all;
  for (const Matrix& matrix : matrices_) all.push_back(matrix.entry.name);
  return all;
}

}  // namespace onebit::muon
