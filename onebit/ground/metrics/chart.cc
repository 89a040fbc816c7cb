#include "onebit/ground/metrics/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "onebit/ground/metrics/human.h"

namespace onebit::metrics {
namespace {

constexpr double kWidth = 720, kHeight = 314;
// The names of the phases are above the lines, which would cross them elsewhere.
constexpr double kLeft = 80, kRight = 12, kTop = 26, kBottom = 30;
constexpr size_t kMaxPoints = 600;

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
  // Widens an empty range, so that a constant line is in the middle.
  void widen() {
    if (high - low > 1e-12 * std::max(std::abs(low), std::abs(high))) return;
    const double margin = std::max(std::abs(low) * 0.1, 1e-9);
    low -= margin;
    high += margin;
  }
};

class Axes {
 public:
  Axes(const Chart& chart, const std::vector<Series>& shown) : logarithmic_(chart.logarithmic) {
    for (const Series& series : shown) {
      for (const Point& point : series) {
        x_.include(point.step);
        y_.include(scaled(point.value));
      }
    }
    if (empty()) return;
    for (const PhaseSpan& phase : chart.phases) {
      x_.include(static_cast<double>(phase.first_step));
      x_.include(static_cast<double>(phase.last_step));
    }
    if (chart.from_zero && !logarithmic_) y_.include(0);
    x_.widen();
    y_.widen();
    const double margin = 0.04 * (y_.high - y_.low);
    if (!chart.from_zero || y_.low < 0) y_.low -= margin;
    y_.high += margin;
  }

  bool empty() const { return x_.empty(); }
  double x(double step) const {
    return kLeft + (kWidth - kLeft - kRight) * (step - x_.low) / (x_.high - x_.low);
  }
  double y(double value) const {
    return kTop + (kHeight - kTop - kBottom) * (y_.high - scaled(value)) / (y_.high - y_.low);
  }
  std::vector<double> x_ticks() const { return ticks(x_.low, x_.high); }
  // Values, not their logarithms.
  std::vector<double> y_ticks() const {
    if (!logarithmic_) return ticks(y_.low, y_.high);
    std::vector<double> powers;
    for (double power = std::ceil(y_.low); power <= y_.high; ++power) {
      powers.push_back(std::pow(10.0, power));
    }
    if (powers.size() >= 2) return powers;
    std::vector<double> round;
    for (double power = std::floor(y_.low); power <= y_.high; ++power) {
      for (const double factor : {1.0, 2.0, 5.0}) {
        const double value = factor * std::pow(10.0, power), at = scaled(value);
        if (at >= y_.low && at <= y_.high) round.push_back(value);
      }
    }
    if (round.size() >= 3) return round;
    return ticks(std::pow(10.0, y_.low), std::pow(10.0, y_.high));
  }

 private:
  double scaled(double value) const { return logarithmic_ ? std::log10(value) : value; }

  bool logarithmic_;
  Range x_, y_;
};

std::string number(double value, const std::string& unit) {
  if (unit == "B") return human_bytes(value);
  if (unit == "s") return human_duration(value);
  if (unit == "%") return fmt::format("{:.3g} %", value);
  const double size = std::abs(value);
  if (size >= 10000) return human_count(value);
  return fmt::format("{:.4g}", value + 0.0);  // a negative zero is shown as 0
}

// "500", "20k", "1.5M".
std::string steps_label(double step) {
  if (step >= 1e6) return fmt::format("{:.6g}M", step / 1e6);
  return step >= 1e4 ? fmt::format("{:.6g}k", step / 1e3) : fmt::format("{:.0f}", step);
}

std::string phase_bands(const Chart& chart, const Axes& axes) {
  std::string text;
  if (chart.phases.size() < 2) return text;
  for (size_t i = 0; i < chart.phases.size(); ++i) {
    const PhaseSpan& phase = chart.phases[i];
    const double begin = axes.x(static_cast<double>(phase.first_step));
    const double end = axes.x(static_cast<double>(
        i + 1 < chart.phases.size() ? chart.phases[i + 1].first_step : phase.last_step));
    if (i % 2 == 1) {
      text += fmt::format(R"(<rect class="band" x="{:.1f}" y="{}" width="{:.1f}" height="{}"/>)",
                          begin, kTop, std::max(end - begin, 0.0), kHeight - kTop - kBottom);
    }
    // In the middle, so that a name that is wider than its phase on a phone touches no other.
    if (end - begin > 60) {
      text += fmt::format(R"(<text class="phase" text-anchor="middle" x="{:.1f}" y="{}">{}</text>)",
                          (begin + end) / 2, kTop - 8, escape_html(phase.name));
    }
  }
  return text;
}

std::string grid(const Chart& chart, const Axes& axes) {
  std::string text;
  for (const double value : axes.y_ticks()) {
    text += fmt::format(R"(<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>)"
                        R"(<text class="tick" text-anchor="end" x="{}" y="{:.1f}">{}</text>)",
                        kLeft, kWidth - kRight, axes.y(value), axes.y(value), kLeft - 6,
                        axes.y(value) + 4, number(value, chart.unit));
  }
  for (const double step : axes.x_ticks()) {
    if (step != std::floor(step)) continue;  // there is no half step
    const double x = axes.x(step);
    text += fmt::format(R"(<text class="tick" text-anchor="{}" x="{:.1f}" y="{}">{}</text>)",
                        x > kWidth - 40 ? "end" : "middle", x, kHeight - kBottom + 20,
                        steps_label(chart.powers_of_two ? std::exp2(step) : step));
  }
  return text;
}

std::string path(const Line& line, const Series& points, const Axes& axes) {
  std::string text;
  if (points.size() > 1) {
    text = fmt::format(R"(<polyline class="line c{}{}" points=")", line.colour,
                       line.dashed ? " dashed" : "");
    for (const Point& point : points) {
      text += fmt::format("{:.1f},{:.1f} ", axes.x(point.step), axes.y(point.value));
    }
    text += "\"/>";
  }
  if (!line.dots && points.size() > 1) return text;
  for (const Point& point : points) {
    text += fmt::format(R"(<circle class="dot c{}" cx="{:.1f}" cy="{:.1f}" r="3"/>)", line.colour,
                        axes.x(point.step), axes.y(point.value));
  }
  return text;
}

std::string plane(const Chart& chart, const std::vector<Series>& shown, const Axes& axes) {
  std::string text = phase_bands(chart, axes) + grid(chart, axes);
  for (size_t i = 0; i < chart.lines.size(); ++i) text += path(chart.lines[i], shown[i], axes);
  return text;
}

std::vector<Series> shown_of(const Chart& chart) {
  std::vector<Series> shown;
  for (const Line& line : chart.lines) {
    shown.push_back(thinned(line.points, kMaxPoints));
    if (chart.logarithmic) {
      std::erase_if(shown.back(), [](const Point& point) { return point.value <= 0; });
    }
  }
  return shown;
}

// The style of a standalone file. Its palette is the page's, on white.
std::string file_style(size_t lines) {
  constexpr const char* kPalette[] = {"#0a6ebd", "#d1495b", "#2a9d6f",
                                      "#8a5fbf", "#c77d0a", "#0f8b8d"};
  std::string text =
      "text{font:12px system-ui,sans-serif;fill:#444}.grid{stroke:#d9d9de}.line{fill:none;"
      "stroke-width:1.8}.dashed{stroke-dasharray:5 4}.title{font-weight:bold}";
  for (size_t i = 0; i < std::min(lines, std::size(kPalette)); ++i) {
    text += fmt::format(".line.c{0}{{stroke:{1}}}.dot.c{0}{{fill:{1}}}", i, kPalette[i]);
  }
  return "<style>" + text + "</style>";
}

std::string file_legend(const Chart& chart, double y) {
  std::string text;
  const double width =
      (kWidth - kLeft) / static_cast<double>(std::max<size_t>(chart.lines.size(), 1));
  for (size_t i = 0; i < chart.lines.size(); ++i) {
    const double x = kLeft + width * static_cast<double>(i);
    text += fmt::format(
        R"(<circle class="dot c{}" cx="{:.1f}" cy="{:.1f}" r="4"/><text x="{:.1f}" y="{:.1f}">{}</text>)",
        chart.lines[i].colour, x, y - 4, x + 10, y, escape_html(chart.lines[i].name));
  }
  return text;
}

std::string legend(const Chart& chart) {
  std::string text = "<figcaption>";
  for (const Line& line : chart.lines) {
    if (line.points.empty()) continue;
    text += fmt::format(R"(<span class="key"><i class="c{}{}"></i>{} <b>{}</b></span> )",
                        line.colour, line.dashed ? " dashed" : "", escape_html(line.name),
                        number(line.points.back().value, chart.unit));
  }
  return text + "</figcaption>";
}

}  // namespace

Series thinned(const Series& series, size_t most) {
  Series finite;
  std::copy_if(series.begin(), series.end(), std::back_inserter(finite),
               [](const Point& point) { return std::isfinite(point.value); });
  if (finite.size() <= most) return finite;
  const size_t parts = std::max<size_t>(most / 2, 1);
  const auto by_value = [](const Point& a, const Point& b) { return a.value < b.value; };
  Series kept;
  for (size_t part = 0; part < parts; ++part) {
    const auto begin = finite.begin() + static_cast<std::ptrdiff_t>(part * finite.size() / parts);
    const auto end =
        finite.begin() + static_cast<std::ptrdiff_t>((part + 1) * finite.size() / parts);
    auto [least, greatest] = std::minmax_element(begin, end, by_value);
    if (greatest < least) std::swap(least, greatest);
    kept.push_back(*least);
    if (greatest != least) kept.push_back(*greatest);
  }
  return kept;
}

std::vector<double> ticks(double low, double high) {
  std::vector<double> values;
  if (!(high > low)) return values;
  const double rough = (high - low) / 5;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor * power >= rough) {
      step = factor * power;
      break;
    }
  }
  for (double i = std::ceil(low / step); i * step <= high * (1 + 1e-12); ++i) {
    values.push_back(i * step);
  }
  return values;
}

std::string draw(const Chart& chart) {
  const std::vector<Series> shown = shown_of(chart);
  const Axes axes(chart, shown);
  if (axes.empty()) return "";
  const std::string title = escape_html(chart.title);
  return fmt::format(
             R"(<figure><h3>{}</h3><svg viewBox="0 0 {} {}" role="img" aria-label="{} against the {}">)",
             title, kWidth, kHeight, title, escape_html(chart.x_name)) +
         plane(chart, shown, axes) + "</svg>" + legend(chart) + "</figure>\n";
}

std::string draw_file(const Chart& chart) {
  constexpr double kTitle = 30, kFoot = 48;
  const std::vector<Series> shown = shown_of(chart);
  const Axes axes(chart, shown);
  const std::string title = escape_html(chart.title);
  std::string text = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" role="img" aria-label="{2}">)"
      R"({3}<rect width="{0}" height="{1}" fill="#fff"/><text class="title" x="{4}" y="20">{2}</text>)",
      kWidth, kTitle + kHeight + kFoot, title, file_style(chart.lines.size()), kLeft);
  if (!axes.empty()) {
    text +=
        fmt::format(R"(<g transform='translate(0 {})'>{}</g>)", kTitle, plane(chart, shown, axes));
  }
  text += fmt::format(R"(<text text-anchor="middle" x="{:.1f}" y="{:.1f}">{}</text>)",
                      (kLeft + kWidth) / 2, kTitle + kHeight + 14, escape_html(chart.x_name));
  return text + file_legend(chart, kTitle + kHeight + 38) + "</svg>\n";
}

std::string escape_html(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

}  // namespace onebit::metrics
