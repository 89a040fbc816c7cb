// Muon (Jordan et al., 2024; Liu et al., arXiv 2502.16982) for the weight matrices of a BERT
// encoder's layers, for comparisons. One of onebit's optimizers updates all other parameters. f32
// on CPUs. With O(u) the orthogonal matrix nearest to u (newton_schulz.h), a matrix is updated by
//
//   m      = 0.95 m + 0.05 g,   u = m + 0.95 (m - m before)       Nesterov's momentum
//   value -= lr (0.2 sqrt(max(rows, columns)) O(u) + weight_decay value)
//
// so that an element of the step is as large as AdamW's. Once the other optimizer compresses,
// matrices are sent at one bit per element, too (matrix_exchange.h), in one of three ways. In all
// of them the owner keeps m, and may replace the 0.95 in u by another `lead`.
#pragma once

#include <memory>
#include <vector>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/compress/sign_codec.h"
#include "onebit/exchange/optim/optimizer.h"
#include "tests/muon/matrix_exchange.h"
#include "tests/muon/newton_schulz.h"
#include "tests/muon/whitening.h"

namespace onebit::muon {

// The values that ranks send at one bit, and those that the owner of a matrix sends back.
enum class Sends {
  kMomentum,  // gradients, then u, from which every rank computes O(u)
  kUpdate,    // gradients, then O(u)
  kWhitened   // y = A g B (whitening.h) with each rank's A and B, then O(u) of unwhitened y
};

struct MuonOptions {
  double momentum = 0.95;
  double weight_decay = 0;
  Sends sends = Sends::kWhitened;
  double lead = compress::momentum_step(0).lead;  // of the owner, as described above
};

class Muon final : public optim::Optimizer {
 public:
  // `others` updates all parameters except the matrices, whose gradients it sees as zeros.
  Muon(const MuonOptions& options, std::unique_ptr<optim::Optimizer> others,
       const ParameterTable& table, comm::Communicator& communicator);

  optim::GradientNeed gradient_need() const override { return others_->gradient_need(); }
  optim::Phase phase() const override { return others_->phase(); }
  // Error: a gradient of a matrix is not finite.
  optim::StepReport step(Context&, ParameterTable&, const optim::StepInput&) override;
  // Saves only the state of the others: runs of this optimizer are not resumed.
  void save(optim::StateWriter& writer) const override { others_->save(writer); }
  void load(Context&, ParameterTable&, const optim::StateReader&) override;
  int64_t saved_bytes(optim::Phase phase) const override { return others_->saved_bytes(phase); }
  int64_t state_bytes() const override { return others_->state_bytes(); }
  int64_t wire_bytes_sent() const override { return others_->wire_bytes_sent(); }

  // The names of the matrices.
  std::vector<std::string> names() const;

 private:
  struct Matrix {
    ParameterEntry entry;
    NewtonSchulz newton_schulz;
    Whitening whitening;
    Tensor momentum;   // of all ranks as long as gradients are averaged, then the owner's
    Tensor direction;  // of this step: the gradient, then u, then O(u)
    Tensor value;      // before the others' step
  };

  void take_gradients(Context&, ParameterTable&, const optim::StepInput&);
  // Replaces the gradient with u.
  void follow(const Matrix& matrix, View direction, double lead) const;
  void exchange(Context&);
  void whiten(Context&);
  void move(ParameterTable&, const optim::StepInput&) const;

  MuonOptions options_;
  std::unique_ptr<optim::Optimizer> others_;
  std::vector<Matrix> matrices_;
  std::unique_ptr<MatrixExchange> exchange_;
  int64_t compressed_updates_ = 0;  // those with y
};

}  // namespace onebit::muon
