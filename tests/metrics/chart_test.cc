#include "onebit/ground/metrics/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace onebit::metrics {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Thinned, KeepsTheExtremesOfEveryPartInTheirOrder) {
  Series series;
  for (int i = 0; i < 100'000; ++i) series.push_back({double(i), std::sin(i * 0.001)});
  series[54'321].value = 40;
  series[54'322].value = -40;
  series[7].value = NAN;
  const Series kept = thinned(series, 600);
  EXPECT_LE(kept.size(), 600u);
  EXPECT_GT(kept.size(), 550u);
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end(),
                             [](const Point& a, const Point& b) { return a.step < b.step; }));
  double least = 0, greatest = 0;
  for (const Point& point : kept) {
    ASSERT_TRUE(std::isfinite(point.value));
    least = std::min(least, point.value);
    greatest = std::max(greatest, point.value);
  }
  EXPECT_EQ(least, -40);
  EXPECT_EQ(greatest, 40);
}

TEST(Thinned, LeavesShortSeriesAsTheyAre) {
  const Series kept = thinned({{1, 5}, {2, INFINITY}, {3, 4}}, 600);
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[1].step, 3);
}

TEST(Ticks, AreRoundAndInside) {
  EXPECT_THAT(ticks(0, 10), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(ticks(3.1, 4.9), ElementsAre(3.5, 4, 4.5));
  EXPECT_TRUE(ticks(1, 1).empty());
  EXPECT_TRUE(ticks(0, NAN).empty());
  for (const double high : {0.00037, 1.0, 88.0, 1e9}) {
    const std::vector<double> values = ticks(-high / 3, high);
    EXPECT_GE(values.size(), 3u) << high;
    EXPECT_LE(values.size(), 8u) << high;
  }
}

TEST(Draw, ShowsLinesPhasesAndLastValues) {
  const Chart chart = {
      .title = "Loss <of words>",
      .unit = "",
      .lines =
          {{.name = "training", .points = {{1, 5}, {2, 4}, {100, 2.5}}},
           {.name = "held out", .points = {{50, 3}}, .colour = 1, .dashed = true, .dots = true}},
      .phases = {{"warmup", 1, 50}, {"compressed", 51, 100}}};
  const std::string text = draw(chart);
  EXPECT_THAT(text, HasSubstr("Loss &lt;of words&gt;"));
  EXPECT_THAT(text, HasSubstr("<polyline class=\"line c0\""));
  EXPECT_THAT(text, HasSubstr("<circle class=\"dot c1\""));
  EXPECT_THAT(text, HasSubstr(">compressed</text>"));
  EXPECT_THAT(text, HasSubstr("<b>2.5</b>"));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
}

TEST(Draw, NamesAPhaseInItsMiddle) {
  const Chart chart = {.title = "a",
                       .unit = "",
                       .lines = {{.name = "a", .points = {{0, 1}, {100, 2}}}},
                       .phases = {{"warmup", 0, 49}, {"compressed", 50, 100}}};
  // The plane is 628 wide and begins at 80.
  EXPECT_THAT(draw(chart), HasSubstr("text-anchor=\"middle\" x=\"237.0\" y=\"18\">warmup<"));
  EXPECT_THAT(draw(chart), HasSubstr("text-anchor=\"middle\" x=\"551.0\" y=\"18\">compressed<"));
}

TEST(Draw, HasRoundTicksWithinAPowerOfTen) {
  const Chart chart = {.title = "a",
                       .unit = "B",
                       .lines = {{.name = "a", .points = {{0, 194e3}, {100, 6.02e6}}}},
                       .logarithmic = true};
  const std::string text = draw(chart);
  for (const char* tick : {">200 kB<", ">500 kB<", ">1.00 MB<", ">2.00 MB<", ">5.00 MB<"}) {
    EXPECT_THAT(text, HasSubstr(tick));
  }
  EXPECT_THAT(text, Not(HasSubstr(">4.00 MB<")));
}

TEST(Draw, IsEmptyWithoutAFinitePoint) {
  EXPECT_EQ(draw({.title = "Loss", .unit = "", .lines = {{.name = "a", .points = {{1, NAN}}}}}),
            "");
  EXPECT_EQ(draw({.title = "Loss",
                  .unit = "",
                  .lines = {{.name = "a", .points = {{1, -1}}}},
                  .logarithmic = true}),
            "");
}

TEST(DrawFile, StandsAlone) {
  const Chart chart = {.title = "rate <of ranks>",
                       .unit = "",
                       .lines = {{.name = "a & b", .points = {{0, 5}, {3, 40}}},
                                 {.name = "c", .points = {{0, 4}, {3, NAN}}, .colour = 1}},
                       .logarithmic = true,
                       .x_name = "ranks",
                       .powers_of_two = true};
  const std::string text = draw_file(chart);
  EXPECT_TRUE(text.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_TRUE(text.ends_with("</svg>\n"));
  for (const char* part : {"rate &lt;of ranks&gt;", "a &amp; b", ">ranks<", ">8<",
                           ".line.c1{stroke:", "<polyline class=\"line c0\""}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(text, Not(HasSubstr("nan")));
  EXPECT_THAT(text, Not(HasSubstr("var(")));  // colours of a page
}

TEST(DrawFile, IsAPictureWithoutPointsToo) {
  EXPECT_THAT(draw_file({.title = "a", .unit = "", .lines = {}}), HasSubstr("</svg>"));
}

TEST(Draw, DrawsASinglePointAndAConstant) {
  EXPECT_THAT(draw({.title = "a", .unit = "", .lines = {{.name = "a", .points = {{7, 0}}}}}),
              HasSubstr("<circle"));
  EXPECT_THAT(
      draw({.title = "a", .unit = "B", .lines = {{.name = "a", .points = {{1, 8}, {9, 8}}}}}),
      HasSubstr("<polyline"));
}

}  // namespace
}  // namespace onebit::metrics
