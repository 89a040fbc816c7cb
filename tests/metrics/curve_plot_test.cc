#include "onebit/ground/metrics/curve_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "onebit/ground/metrics/text_table.h"

namespace onebit::metrics {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

Curve line_curve(const std::string& name, double from, double to) {
  Curve curve{name, {}};
  for (int i = 0; i <= 100; ++i) curve.points.emplace_back(i * 10, from + (to - from) * i / 100);
  return curve;
}

TEST(CurvePlot, ALineInMarks) {
  const std::vector<Curve> curves = {line_curve("up", 0, 4), line_curve("down", 4, 0)};
  EXPECT_EQ(draw_curves(curves, {.x_label = "step", .width = 24, .height = 5}),
            "4 ┤ooooo            ****\n"
            "  │    ooooo    *****\n"
            "2 ┤        oooooo\n"
            "  │    *****    ooooo\n"
            "0 ┤*****            oooo\n"
            "  └─────────────────────\n"
            "   0     step      1.00k\n"
            "   * up   o down\n");
}

TEST(CurvePlot, BrailleLineFallsFromTheTopLeftToTheBottomRight) {
  const std::vector<Curve> curves = {line_curve("loss", 10, 6)};
  const auto lines = lines_of(draw_curves(curves, {.width = 50, .height = 8}));
  ASSERT_EQ(lines.size(), 10u);
  size_t last_width = 0;
  for (size_t row = 0; row < 8; ++row) {
    EXPECT_LE(display_width(lines[row]), 50u);
    EXPECT_GT(display_width(lines[row]), last_width);
    last_width = display_width(lines[row]);
  }
  EXPECT_THAT(lines[0], HasSubstr("10"));
  EXPECT_THAT(lines[7], HasSubstr("6"));
  EXPECT_EQ(display_width(lines[8]), 50u);
}

TEST(CurvePlot, GapsAreJoinedAndNotFiniteValuesLeftOut) {
  const std::vector<Curve> curves = {{"a", {{0, 1}, {5, NAN}, {100, 1}, {7, INFINITY}}}};
  const auto lines = lines_of(draw_curves(curves, {.width = 40, .height = 4}));
  size_t filled = 0;
  for (const auto& line : lines) {
    for (size_t i = 0; i + 1 < line.size(); ++i) {
      const auto second = static_cast<unsigned char>(line[i + 1]);
      filled += line[i] == '\xe2' && second >= 0xA0 && second <= 0xA3;  // U+2800..U+28FF
    }
  }
  EXPECT_GT(filled, 30u);  // one straight line across the plane
}

TEST(CurvePlot, NothingToDraw) {
  EXPECT_EQ(draw_curves({}, {}), "(no finite points to draw)\n");
  const std::vector<Curve> curves = {{"a", {{NAN, 1}, {1, NAN}}}};
  EXPECT_EQ(draw_curves(curves, {}), "(no finite points to draw)\n");
}

TEST(CurvePlot, OnePointHugeAndTinyValues) {
  EXPECT_THAT(draw_curves(std::vector<Curve>{{"a", {{3, 5}}}}, {}), HasSubstr("┤"));
  EXPECT_THAT(draw_curves(std::vector<Curve>{{"a", {{0, 1e-9}, {1, 2e-9}}}}, {}),
              HasSubstr("0.0000000010"));
  EXPECT_THAT(draw_curves(std::vector<Curve>{{"a", {{0, -1e12}, {1, 1e12}}}}, {}),
              HasSubstr("1000000000000"));
}

TEST(CurvePlot, ColoursOnlyOnRequest) {
  const std::vector<Curve> curves = {line_curve("a", 0, 1), line_curve("b", 1, 0)};
  EXPECT_THAT(draw_curves(curves, {}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(draw_curves(curves, {.color = true}), HasSubstr("\x1b[36m"));
}

}  // namespace
}  // namespace onebit::metrics
