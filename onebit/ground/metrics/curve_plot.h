// Plots curves with characters, for a loss at the end of a run, in a terminal or a log.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace onebit::metrics {

struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;  // (x, y), where others than finite are left out
};

struct CurvePlot {
  std::string x_label = "step";
  size_t width = 72;   // of the whole drawing, in columns
  size_t height = 16;  // of the plane, in lines
  bool color = false;  // ANSI colours distinguish the curves. Without them each has its own mark
};

// Draws one curve, or several in colour, in Braille dots (two by four per character). Several
// without colour are drawn with one mark each. Points are averaged within a column and neighbours
// joined. Axes have round numbers, and several curves have a legend below. Without a finite point
// the result is a line that reports this.
std::string draw_curves(std::span<const Curve> curves, const CurvePlot& plot);

}  // namespace onebit::metrics
