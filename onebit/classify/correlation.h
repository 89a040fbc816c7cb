// How well predicted numbers follow the true ones. Equal to scipy's and scikit-learn's.
#pragma once

#include <span>
#include <vector>

namespace onebit::classify {

// NaN where one side is constant, or there are fewer than two pairs.
double pearson_correlation(std::span<const double> x, std::span<const double> y);
// Pearson's of the ranks; equal numbers share the mean of their ranks.
double spearman_correlation(std::span<const double> x, std::span<const double> y);
double mean_squared_error(std::span<const double> x, std::span<const double> y);

// From 1 on, in the order of `values`.
std::vector<double> mean_ranks(std::span<const double> values);

}  // namespace onebit::classify
