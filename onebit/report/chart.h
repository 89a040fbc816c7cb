// A line chart as SVG, to stand inside an HTML page: readable on a phone, in light and dark,
// without scripts or outside files.
#pragma once

#include <string>
#include <vector>

#include "onebit/report/run_history.h"

namespace onebit::report {

struct Line {
  std::string name;
  Series points;
  int colour = 0;       // of the page's palette
  bool dashed = false;  // held-out values beside those of training
  bool dots = false;    // few points, each of which counts
};

struct Chart {
  std::string title;
  std::string unit;  // behind the numbers of the vertical axis
  std::vector<Line> lines;
  std::vector<PhaseSpan> phases;  // shaded and named; of one run alone
  bool from_zero = false;
  bool logarithmic = false;  // values that are not positive are left out
  std::string x_name = "step";
  bool powers_of_two = false;  // a point's step is the logarithm of what is shown below it
};

// At most `most` points that keep the smallest and largest value of every part, in their order:
// what a line of so many pixels would show. Values that are not finite are left out.
Series thinned(const Series& series, size_t most);

// Round numbers between `low` and `high`, three to seven of them.
std::vector<double> ticks(double low, double high);

// <figure> with title, <svg> and legend; empty where no line has a finite point.
std::string draw(const Chart& chart);

// The same as a file of its own, with legend and colours in it: an <svg> element with its
// namespace.
std::string draw_file(const Chart& chart);

std::string escape_html(std::string_view text);

}  // namespace onebit::report
