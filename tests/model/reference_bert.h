// BERT from its formulas in double precision, forward only: gradients come from central
// differences. Written for clarity, not speed: plain loops over one sequence at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "onebit/math/model/config.h"
#include "onebit/math/tensor/parameter_table.h"
#include "tests/model/test_model.h"
#include "tests/model/tiny_batch.h"

namespace onebit::model {

class ReferenceBert {
 public:
  using Matrix = std::vector<std::vector<double>>;

  // Takes the values of every parameter of the table.
  ReferenceBert(const EncoderConfig& config, const ParameterTable& table);

  // Like TrainingPass::layer_factors: multiplies the output of a layer's two parts by its factor. A
  // layer with factor 0 is the identity. Empty: 1 everywhere.
  void set_layer_factors(std::vector<float> factors) { layer_factors_ = std::move(factors); }

  struct PreTrainingLoss {
    double masked_lm = 0, next_sentence = 0;  // sums over items
  };
  // Dropout as in kernels/dropout_mask.h with this seed, and none without a seed.
  using DropoutSeed = std::optional<uint64_t>;

  PreTrainingLoss pretraining(const TinyBatch& batch, DropoutSeed seed) const;
  // Sum over sequences of (start + end) / 2.
  double question_answering(const TinyBatch& batch, DropoutSeed seed,
                            double head_dropout = 0) const;
  // The loss of the classes, or of label values with term(logit, value, column) per column.
  double classification(const TinyBatch& batch, DropoutSeed seed) const;
  using LabelTerm = std::function<double(double logit, double value, size_t column)>;
  double classification(const TinyBatch& batch, DropoutSeed seed, const LabelTerm& term) const;

  // The loss of the tags of tagged rows.
  double tagging(const TinyBatch& batch, DropoutSeed seed) const;

  // For each sequence the mean of the last hidden states, or the first one.
  Matrix mean_vectors(const TinyBatch& batch, DropoutSeed seed) const;
  Matrix first_vectors(const TinyBatch& batch, DropoutSeed seed) const;

  // d loss / d parameter for every parameter, where loss() reads this object.
  template <typename Loss>
  Gradients differences(Loss&& loss) {
    constexpr double kStep = 1e-4;
    Gradients gradients;
    for (auto& [name, values] : values_) {
      for (double& value : values) {
        const double kept = value;
        value = kept + kStep;
        const double above = loss();
        value = kept - kStep;
        const double below = loss();
        value = kept;
        gradients[name].push_back((above - below) / (2 * kStep));
      }
    }
    return gradients;
  }

 private:
  using Vector = std::vector<double>;
  struct Place {  // where dropout happens
    uint32_t site;
    uint64_t row_key;
  };

  const Vector& value(std::string name) const { return values_.at(name); }
  Vector linear(const Vector& x, const std::string& name) const;
  Vector norm(const Vector& x, const std::string& name) const;
  Vector activate(Vector x) const;
  Vector drop(Vector x, double probability, const Place& place, DropoutSeed seed,
              uint32_t first_column = 0) const;
  Matrix hidden(const TinyBatch& batch, DropoutSeed seed) const;
  Vector class_logits(const Matrix& hidden, const TinyBatch& batch, size_t sequence,
                      DropoutSeed seed) const;
  Matrix attention(const Matrix& x, int64_t layer, const TinyBatch& batch, size_t first,
                   size_t last, DropoutSeed seed) const;
  Matrix layer(const Matrix& x, int64_t index, const TinyBatch& batch, DropoutSeed seed) const;
  Vector pooled(const Matrix& hidden, const TinyBatch& batch, size_t sequence) const;

  double factor(int64_t layer) const {
    return layer_factors_.empty() ? 1 : double{layer_factors_[static_cast<size_t>(layer)]};
  }

  EncoderConfig config_;
  std::vector<float> layer_factors_;
  std::unordered_map<std::string, Vector> values_;
};

}  // namespace onebit::model
