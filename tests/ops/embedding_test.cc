#include "onebit/math/ops/embedding.h"

#include "tests/ops/backend_test.h"
#include "tests/reference/layer_norm.h"

namespace onebit::ops {
namespace {

using reference::Matrix;

constexpr int64_t kVocab = 50, kPositions = 20, kSegments = 2;

// What the embedding of a family of encoders has. The defaults are BERT's.
struct Form {
  bool has_positions = true, has_segments = true, has_norm = true, has_beta = true;
  NormKind kind = NormKind::kLayer;
};

class EmbeddingTest : public BackendTest {
 protected:
  std::vector<int32_t> ids(int64_t rows, int64_t bound, uint64_t stream) {
    RandomSequence sequence(9, stream, 0);
    std::vector<int32_t> result;
    for (int64_t i = 0; i < rows; ++i) {
      result.push_back(static_cast<int32_t>(sequence.below(static_cast<uint32_t>(bound))));
    }
    return result;
  }

  void check(DType table_type, int64_t rows, int64_t hidden, double probability,
             const Form& form = {});
};

void add_rows(Matrix& table, const std::vector<int32_t>& id, const Matrix& grad) {
  for (int64_t i = 0; i < grad.rows; ++i) {
    for (int64_t j = 0; j < grad.columns; ++j) table(id[size_t(i)], j) += grad(i, j);
  }
}

Matrix rows_of(const Matrix& table, const std::vector<int32_t>& id) {
  Matrix rows(static_cast<int64_t>(id.size()), table.columns);
  for (int64_t i = 0; i < rows.rows; ++i) {
    for (int64_t j = 0; j < rows.columns; ++j) rows(i, j) = table(id[size_t(i)], j);
  }
  return rows;
}

View view_if(bool is_there, const Tensor& tensor) {
  return is_there ? tensor.view() : View();
}

// What is left out is neither read nor written.
void EmbeddingTest::check(DType table_type, int64_t rows, int64_t hidden, double probability,
                          const Form& form) {
  const auto tokens = ids(rows, kVocab, 1), positions = ids(rows, kPositions, 2);
  const auto segments = ids(rows, kSegments, 3);
  const auto table = [&](int64_t size, uint64_t stream) {
    return rounded(random_f32(size, hidden, stream), table_type);
  };
  const Matrix word = table(kVocab, 4), grad_y = random(rows, hidden, 9);
  const Matrix position = form.has_positions ? table(kPositions, 5) : Matrix(kPositions, hidden);
  const Matrix segment = form.has_segments ? table(kSegments, 6) : Matrix(kSegments, hidden);
  const Matrix g = random_f32(1, hidden, 7);
  const Matrix b = form.has_beta ? random_f32(1, hidden, 8) : Matrix(1, hidden);
  const Matrix sums =
      sum(sum(rows_of(word, tokens), rows_of(position, positions)), rows_of(segment, segments));
  const auto drop = rule(probability, rows);
  reference::Norm norm = reference::layer_norm(sums, g, b, 1e-12, form.kind);
  if (!form.has_norm) norm.y = sums;

  const Tensor on_word = upload(word, table_type, {kVocab, hidden});
  const Tensor on_position = upload(position, table_type, {kPositions, hidden});
  const Tensor on_segment = upload(segment, table_type, {kSegments, hidden});
  const Tensor on_tokens = upload_values(tokens, {rows}), on_g = upload_vector(g);
  const Tensor on_positions = upload_values(positions, {rows}), on_b = upload_vector(b);
  const Tensor on_segments = upload_values(segments, {rows}), y = zeros({rows, hidden});
  const Tensor mean = zeros_f32({rows}), inverse = zeros_f32({rows});
  const bool has_mean = form.has_norm && form.kind == NormKind::kLayer;
  embedding(context(), {.kind = form.kind,
                        .tokens = on_tokens.view(),
                        .positions = view_if(form.has_positions, on_positions),
                        .segments = view_if(form.has_segments, on_segments),
                        .word = on_word.view(),
                        .position = view_if(form.has_positions, on_position),
                        .segment = view_if(form.has_segments, on_segment),
                        .gamma = view_if(form.has_norm, on_g),
                        .beta = view_if(form.has_beta, on_b),
                        .dropout = dropout(drop),
                        .y = y.view(),
                        .mean = view_if(has_mean, mean),
                        .inverse_stddev = view_if(form.has_norm, inverse)});
  // As for layer norm (norm_fixture.h), after a sum of three numbers up to 2, scaled by 1 / (1 -
  // p).
  const auto over = [](int64_t terms) { return 4 * std::sqrt(static_cast<double>(terms)) + 4; };
  const double error = 4 * 4 * over(hidden) * 0x1p-24 / (1 - probability);
  expect_near(y, drop.apply(norm.y), 2 * epsilon(), error, "y");

  auto wanted = reference::layer_norm_backward(drop.apply(grad_y), norm, g, form.kind);
  if (!form.has_norm) wanted.x = drop.apply(grad_y);
  Matrix want_word(kVocab, hidden), want_position(kPositions, hidden);
  Matrix want_segment(kSegments, hidden);
  add_rows(want_word, tokens, wanted.x);
  add_rows(want_position, positions, wanted.x);
  add_rows(want_segment, segments, wanted.x);
  const Tensor on_grad = upload(grad_y), grad_word = zeros_f32({kVocab, hidden});
  const Tensor grad_position = zeros_f32({kPositions, hidden});
  const Tensor grad_segment = zeros_f32({kSegments, hidden});
  const Tensor grad_gamma = zeros_f32({hidden}), grad_beta = zeros_f32({hidden});
  embedding_backward(context(), {.kind = form.kind,
                                 .grad_y = on_grad.view(),
                                 .tokens = on_tokens.view(),
                                 .positions = view_if(form.has_positions, on_positions),
                                 .segments = view_if(form.has_segments, on_segments),
                                 .word = on_word.view(),
                                 .position = view_if(form.has_positions, on_position),
                                 .segment = view_if(form.has_segments, on_segment),
                                 .gamma = view_if(form.has_norm, on_g),
                                 .mean = view_if(has_mean, mean),
                                 .inverse_stddev = view_if(form.has_norm, inverse),
                                 .dropout = dropout(drop),
                                 .grad_word = grad_word.view(),
                                 .grad_position = view_if(form.has_positions, grad_position),
                                 .grad_segment = view_if(form.has_segments, grad_segment),
                                 .grad_gamma = view_if(form.has_norm, grad_gamma),
                                 .grad_beta = view_if(form.has_beta, grad_beta)});
  const double rows_error = 4 * over(rows) * error;
  expect_near(grad_word, want_word, 0, rows_error, "grad_word");
  if (form.has_positions) expect_near(grad_position, want_position, 0, rows_error, "grad_position");
  if (form.has_segments) expect_near(grad_segment, want_segment, 0, rows_error, "grad_segment");
  if (form.has_norm) expect_near(grad_gamma, wanted.gamma, 0, rows_error, "grad_gamma");
  if (form.has_beta) expect_near(grad_beta, wanted.beta, 0, rows_error, "grad_beta");
}

TEST_P(EmbeddingTest, TablesOfTheComputeType) {
  check(dtype(), 37, 40, 0.1);
}

TEST_P(EmbeddingTest, TablesOfF32) {
  check(DType::kF32, 130, 101, 0);
}

// CUDA kernels process 2048 ids at a time, where eight warps share a row.
TEST_P(EmbeddingTest, MoreRowsThanAreLookedAtTogether) {
  check(dtype(), 2300, 264, 0);
}

TEST_P(EmbeddingTest, PartsThatAreLeftOut) {
  check(dtype(), 130, 40, 0.1, {.has_segments = false});   // DistilBERT
  check(dtype(), 130, 40, 0.1, {.has_positions = false});  // nomic-bert
  check(dtype(), 37, 101, 0, {.has_positions = false, .has_segments = false, .has_beta = false});
  check(DType::kF32, 130, 40, 0.1,
        {.has_positions = false,
         .has_segments = false,
         .has_norm = false,
         .has_beta = false});  // NeoBERT
  check(dtype(), 130, 40, 0.1, {.has_norm = false, .has_beta = false});
  check(dtype(), 130, 40, 0.1, {.has_beta = false, .kind = NormKind::kRms});
}

TEST_P(EmbeddingTest, OneRow) {
  check(dtype(), 1, 12, 0.1);
}

ONEBIT_ON_EVERY_BACKEND(EmbeddingTest);

TEST(EmbeddingErrors, NameTheRow) {
  Context context = Context::cpu(1);
  const auto zeros = [](Shape shape) { return Tensor::zeros({}, DType::kF32, shape); };
  const Tensor word = zeros({5, 8}), position = zeros({4, 8}), segment = zeros({2, 8});
  const Tensor gamma = zeros({8}), y = zeros({3, 8});
  const int32_t tokens[] = {0, 1, 5}, positions[] = {0, 1, 2}, segments[] = {0, 0, 1};
  try {
    embedding(context, {.tokens = ConstView::of(tokens, {3}),
                        .positions = ConstView::of(positions, {3}),
                        .segments = ConstView::of(segments, {3}),
                        .word = word.view(),
                        .position = position.view(),
                        .segment = segment.view(),
                        .gamma = gamma.view(),
                        .beta = gamma.view(),
                        .dropout = {},
                        .y = y.view(),
                        .mean = {},
                        .inverse_stddev = {}});
    FAIL() << "a token outside the vocabulary was taken";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "embedding: token 5 of row 2 is outside its table of 5");
  }
}

}  // namespace
}  // namespace onebit::ops
