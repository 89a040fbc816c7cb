#include "onebit/program/cluster/link_report.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onebit::cluster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<PortRange> kRanges = {{.use = "values", .first = 40000, .last = 40999},
                                        {.use = "messages", .first = 41000, .last = 41999}};

LinkFindings closed(const std::vector<ClosedLink>& links) {
  return {.closed = links, .measured = {}, .failed = {}};
}

ClosedLink link(const char* from, const char* to, size_t range = 0, const char* why = "silence") {
  return {
      .from = from, .to = to, .range = range, .port = range == 0 ? 40000 : 41000, .reason = why};
}

TEST(LinkReport, NamesThePairThePortAndWhatToOpen) {
  const Problems problems = problems_of(closed({link("a", "b")}), kRanges);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].place, "b");
  EXPECT_THAT(problems[0].what,
              HasSubstr("cannot be reached from a at TCP port 40000 (values), silence: open TCP "
                        "ports 40000-40999 between all hosts"));
  EXPECT_THAT(problems[0].what, HasSubstr("docs/cluster.md"));
}

TEST(LinkReport, JoinsWhatHasOneCause) {
  const Problems problems =
      problems_of(closed({link("a", "b"), link("a", "b", 1), link("c", "b"), link("c", "b", 1),
                          link("b", "a", 0, "refused"), link("d", "b")}),
                  kRanges);
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_THAT(problems[0].what, HasSubstr("from a, c at TCP port 40000 (values) and 41000 "
                                          "(messages), silence: open TCP ports 40000-40999 and "
                                          "41000-41999"));
  EXPECT_EQ(problems[1].place, "a");
  EXPECT_THAT(problems[1].what, HasSubstr("refused"));
  EXPECT_THAT(problems[2].what, HasSubstr("from d at TCP port 40000 (values), silence"));
}

TEST(LinkReport, LeavesOutAsFewHostsAsItCan) {
  const std::vector<std::string> hosts = {"a", "b", "c", "d"};
  EXPECT_THAT(hosts_to_leave_out({}, hosts), IsEmpty());
  EXPECT_THAT(hosts_to_leave_out(closed({link("a", "b")}), hosts), ElementsAre("b"));
  EXPECT_THAT(hosts_to_leave_out(closed({link("b", "a"), link("a", "c"), link("a", "d")}), hosts),
              ElementsAre("a"));
  EXPECT_THAT(hosts_to_leave_out(closed({link("b", "a"), link("c", "d")}), hosts),
              testing::SizeIs(2));
  // The launcher's machine is not on the list of hosts and is not left out.
  EXPECT_THAT(hosts_to_leave_out(closed({link("a", "localhost", 1)}), hosts), ElementsAre("a"));
  LinkFindings failed;
  failed.failed = {{"c", "does not listen"}};
  EXPECT_THAT(hosts_to_leave_out(failed, hosts), ElementsAre("c"));
}

MeasuredLink measured(const char* from, const char* to, double rate) {
  return {.from = from, .to = to, .seconds = 50e-6, .bytes_per_second = rate / 8};
}

TEST(LinkReport, ShowsLinksAndWhichAreSlow) {
  const std::vector<MeasuredLink> links = {measured("a", "b", 9.4e9), measured("b", "a", 9.4e9),
                                           measured("a", "c", 94e6), measured("c", "a", 9.3e9)};
  const std::string table = link_table(links);
  EXPECT_THAT(table, HasSubstr("to c"));
  EXPECT_THAT(table, HasSubstr("94 Mb/s, 50.0 us"));
  const Problems slow = slow_links(links);
  ASSERT_EQ(slow.size(), 1u);
  EXPECT_EQ(slow[0].place, "a");
  EXPECT_THAT(slow[0].what, HasSubstr("its link to c transfers 94 Mb/s"));
  EXPECT_EQ(plan_words(links), "--bandwidth 94Mb/s --latency 50us");
  EXPECT_EQ(link_table({}), "");
  EXPECT_THAT(slow_links({}), IsEmpty());
}

TEST(LinkReport, ShowsTheSlowestOfMany) {
  std::vector<MeasuredLink> links;
  for (int i = 0; i < 20; ++i) {
    links.push_back(measured(fmt::format("n{}", i).c_str(), "x", 1e9 + i));
    links.push_back(measured("x", fmt::format("n{}", i).c_str(), 1e9 + 100 + i));
  }
  const std::string table = link_table(links);
  EXPECT_THAT(table, HasSubstr("slowest links"));
  EXPECT_THAT(table, HasSubstr("n0 to x"));
  EXPECT_THAT(table, HasSubstr("the median of 40"));
  EXPECT_THAT(table, testing::Not(HasSubstr("x to n19")));
}

TEST(LinkReport, RatesHaveThreeDigits) {
  EXPECT_EQ(rate_text(1.18e9), "9.44 Gb/s");
  EXPECT_EQ(rate_text(999.7e6 / 8), "1 Gb/s");
  EXPECT_EQ(rate_text(50e3 / 8), "50 kb/s");
}

}  // namespace
}  // namespace onebit::cluster
