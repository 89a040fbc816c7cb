// Measures of the agreement of predicted and true numbers. Equal to scipy's and scikit-learn's.
#pragma once

#include <span>
#include <vector>

namespace onebit::metrics {

// NaN if one side is constant or contains NaN, or there are fewer than two pairs.
double pearson_correlation(std::span<const double> x, std::span<const double> y);
// Pearson's correlation of the ranks, where equal numbers share the mean of their ranks.
double spearman_correlation(std::span<const double> x, std::span<const double> y);
double mean_squared_error(std::span<const double> x, std::span<const double> y);

// Ranks from 1, in the order of `values`, which contain no NaN.
std::vector<double> mean_ranks(std::span<const double> values);

}  // namespace onebit::metrics
