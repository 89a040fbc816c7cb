#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "tests/reference/dropout.h"
#include "tests/reference/matrix.h"

namespace onebit::reference {

// One head of one sequence: [length, head_size] each.
struct AttentionHead {
  Matrix query, key, value;
};

struct Attention {
  const Matrix& qkv;  // [rows, 3 * hidden]
  const std::vector<int32_t>& starts;
  int64_t heads;
  DropoutRule dropout;
  int64_t window = -1;                 // keys further away than this are not seen, -1: none is
  const Matrix* score_bias = nullptr;  // [heads, columns], the middle one for distance 0

  bool sees(int64_t query, int64_t key) const {
    return window < 0 || std::abs(query - key) <= window;
  }
  double bias(int64_t head, int64_t query, int64_t key) const {
    if (score_bias == nullptr) return 0;
    return (*score_bias)(head, score_bias->columns / 2 + key - query);
  }

  int64_t hidden() const { return qkv.columns / 3; }
  int64_t head_size() const { return hidden() / heads; }

  Matrix third(int which, size_t sequence, int64_t head) const {
    const int64_t first = starts[sequence], length = starts[sequence + 1] - starts[sequence];
    Matrix part(length, head_size());
    for (int64_t i = 0; i < length; ++i) {
      for (int64_t j = 0; j < head_size(); ++j) {
        part(i, j) = qkv(first + i, which * hidden() + head * head_size() + j);
      }
    }
    return part;
  }

  // Probabilities of one head before dropout, [length, length]. Fills log_sum_exp [heads, rows].
  Matrix probabilities(size_t sequence, int64_t head, Matrix* log_sum_exp) const {
    Matrix p = product(third(0, sequence, head), transposed(third(1, sequence, head)));
    const double scale = 1 / std::sqrt(static_cast<double>(head_size()));
    for (int64_t i = 0; i < p.rows; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < p.columns; ++j) {
        p(i, j) = sees(i, j) ? std::exp(p(i, j) * scale + bias(head, i, j)) : 0;
        sum += p(i, j);
      }
      for (int64_t j = 0; j < p.columns; ++j) p(i, j) /= sum;
      if (log_sum_exp != nullptr) (*log_sum_exp)(head, starts[sequence] + i) = std::log(sum);
    }
    return p;
  }

  Matrix factors(size_t sequence, int64_t head) const {
    const int64_t first = starts[sequence], length = starts[sequence + 1] - starts[sequence];
    Matrix f(length, length);
    for (int64_t i = 0; i < length; ++i) {
      for (int64_t j = 0; j < length; ++j) f(i, j) = dropout.factor(first + i, head * 65536 + j);
    }
    return f;
  }

  Matrix forward(Matrix* log_sum_exp = nullptr) const {
    Matrix context(qkv.rows, hidden());
    for (size_t s = 0; s + 1 < starts.size(); ++s) {
      for (int64_t head = 0; head < heads; ++head) {
        Matrix p = probabilities(s, head, log_sum_exp);
        const Matrix f = factors(s, head);
        for (size_t i = 0; i < p.data.size(); ++i) p.data[i] *= f.data[i];
        const Matrix part = product(p, third(2, s, head));
        for (int64_t i = 0; i < part.rows; ++i) {
          for (int64_t j = 0; j < part.columns; ++j) {
            context(starts[s] + i, head * head_size() + j) = part(i, j);
          }
        }
      }
    }
    return context;
  }

  // Adds to grad_score_bias [heads, columns], unless it is null.
  Matrix backward(const Matrix& grad_context, Matrix* grad_score_bias = nullptr) const {
    Matrix grad(qkv.rows, qkv.columns);
    for (size_t s = 0; s + 1 < starts.size(); ++s) {
      for (int64_t head = 0; head < heads; ++head) {
        backward_head(grad_context, s, head, grad, grad_score_bias);
      }
    }
    return grad;
  }

  void backward_head(const Matrix& grad_context, size_t s, int64_t head, Matrix& grad,
                     Matrix* grad_score_bias) const {
    const Matrix query = third(0, s, head), key = third(1, s, head), value = third(2, s, head);
    const Matrix p = probabilities(s, head, nullptr), f = factors(s, head);
    Matrix grad_out(p.rows, head_size());
    for (int64_t i = 0; i < grad_out.rows; ++i) {
      for (int64_t j = 0; j < grad_out.columns; ++j) {
        grad_out(i, j) = grad_context(starts[s] + i, head * head_size() + j);
      }
    }
    Matrix kept = p, grad_p = product(grad_out, transposed(value));
    for (size_t i = 0; i < p.data.size(); ++i) {
      kept.data[i] *= f.data[i];
      grad_p.data[i] *= f.data[i];
    }
    Matrix grad_score = grad_p;
    for (int64_t i = 0; i < p.rows; ++i) {
      double total = 0;
      for (int64_t j = 0; j < p.columns; ++j) total += grad_p(i, j) * p(i, j);
      for (int64_t j = 0; j < p.columns; ++j) {
        const double of_score = p(i, j) * (grad_p(i, j) - total);
        grad_score(i, j) = of_score / std::sqrt(static_cast<double>(head_size()));
        if (grad_score_bias == nullptr) continue;
        (*grad_score_bias)(head, grad_score_bias->columns / 2 + j - i) += of_score;
      }
    }
    const Matrix parts[3] = {product(grad_score, key), product(transposed(grad_score), query),
                             product(transposed(kept), grad_out)};
    for (int which = 0; which < 3; ++which) {
      for (int64_t i = 0; i < p.rows; ++i) {
        for (int64_t j = 0; j < head_size(); ++j) {
          grad(starts[s] + i, which * hidden() + head * head_size() + j) = parts[which](i, j);
        }
      }
    }
  }
};

}  // namespace onebit::reference
