// A line chart as SVG for use in an HTML page: readable on a phone, in light and dark, without
// scripts or outside files.
#pragma once

#include <string>
#include <vector>

#include "onebit/ground/metrics/run_history.h"

namespace onebit::metrics {

struct Line {
  std::string name;
  Series points;
  int colour = 0;       // index in the page's palette
  bool dashed = false;  // for held-out values, unlike training's
  bool dots = false;    // marks every point, for series with few points
};

struct Chart {
  std::string title;
  std::string unit;  // after the numbers of the vertical axis
  std::vector<Line> lines;
  std::vector<PhaseSpan> phases;  // shaded and named, only for a single run
  bool from_zero = false;
  bool logarithmic = false;  // values that are not positive are left out
  std::string x_name = "step";
  bool powers_of_two = false;  // a point's step is the base-2 logarithm of its label on the axis
};

// At most `most` points: the smallest and largest value of every part of the series, in their
// order, which is what a line of that many pixels would show. Values that are not finite are left
// out.
Series thinned(const Series& series, size_t most);

// Round numbers between `low` and `high`, three to seven of them.
std::vector<double> ticks(double low, double high);

// Returns a <figure> with title, <svg> and legend, or "" if no line has a finite point.
std::string draw(const Chart& chart);

// The same chart as a standalone file with legend and colours: an <svg> element with its namespace.
std::string draw_file(const Chart& chart);

std::string escape_html(std::string_view text);

}  // namespace onebit::metrics
