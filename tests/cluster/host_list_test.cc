#include "onebit/program/cluster/host_list.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onebit::cluster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Hosts three_hosts() {
  return {make_host("a", 2, "hosts:1"), make_host("b", 4, "hosts:2"), make_host("c", 4, "hosts:3")};
}

// "a:0,1 c:0,2"
std::string text_of(const Hosts& hosts) {
  std::string text;
  for (const Host& host : hosts) {
    text += (text.empty() ? "" : " ");
    text += host.name;
    for (size_t i = 0; i < host.slots.size(); ++i) {
      text += fmt::format("{}{}", i == 0 ? ":" : ",", host.slots[i]);
    }
  }
  return text;
}

TEST(Hostfile, IsReadWithTabsCommentsAndBlankLines) {
  Problems problems;
  const Hosts hosts = parse_hostfile(
      "\xEF\xBB\xBF# the cluster\n\nworker-1 slots=2\n\tworker-2\tslots=4  # the large one\r\n"
      "  10.0.0.3   slots=1\n",
      "hosts", problems);
  EXPECT_THAT(problems, testing::IsEmpty());
  EXPECT_EQ(text_of(hosts), "worker-1:0,1 worker-2:0,1,2,3 10.0.0.3:0");
  EXPECT_EQ(hosts[1].place, "hosts:4");
}

TEST(Hostfile, ShowsEveryWrongLine) {
  Problems problems;
  const Hosts hosts = parse_hostfile(
      "a slots=2\nb\nc slots=0\nd slots=two\na slots=1\ne slot=4\nf slots=1 more\n-g slots=1\n"
      "h slots=99999\n",
      "dir/hosts", problems);
  EXPECT_EQ(text_of(hosts), "a:0,1");
  ASSERT_EQ(problems.size(), 8u);
  EXPECT_EQ(problems[0].place, "dir/hosts:2");
  EXPECT_THAT(problems[0].what, HasSubstr("HOST slots=N"));
  EXPECT_THAT(problems[1].what, HasSubstr("from 1 to"));
  EXPECT_THAT(problems[2].what, HasSubstr("slots=two"));
  EXPECT_EQ(problems[3].place, "dir/hosts:5");
  EXPECT_THAT(problems[3].what, HasSubstr("already (dir/hosts:1)"));
  EXPECT_THAT(problems[6].what, HasSubstr("is not a host name"));
  EXPECT_EQ(problems[7].place, "dir/hosts:9");
}

TEST(Hostfile, MustListAHost) {
  Problems problems;
  parse_hostfile("# nobody\n", "hosts", problems);
  EXPECT_THAT(problems, ElementsAre(Problem{"hosts", "lists no host; a line is HOST slots=N"}));
}

TEST(HostOption, TakesHostsWithAndWithoutSlots) {
  Problems problems;
  const Hosts hosts = parse_host_option("a,b:2,c:4", problems);
  EXPECT_THAT(problems, testing::IsEmpty());
  EXPECT_EQ(text_of(hosts), "a b:0,1 c:0,1,2,3");
  EXPECT_EQ(text_of(parse_host_option(" a, b:2 ,\tc:1", problems)), "a b:0,1 c:0");
  EXPECT_THAT(problems, testing::IsEmpty());
  parse_host_option("a,,a,b:0,c:x,d e, ,f:02", problems);
  EXPECT_EQ(problems.size(), 7u);
}

struct FilterCase {
  const char* include;
  const char* exclude;
  const char* left;
};

TEST(Filter, KeepsAndDropsAsDeepSpeedDoes) {
  const FilterCase cases[] = {
      {"", "", "a:0,1 b:0,1,2,3 c:0,1,2,3"}, {"a@c:0,2", "", "a:0,1 c:0,2"},
      {"c:0,2@a", "", "a:0,1 c:0,2"},  // the order of the list stays
      {"", "b", "a:0,1 c:0,1,2,3"},          {"", "b:0,1@c:3", "a:0,1 b:2,3 c:0,1,2"},
      {"", "a:0,1", "b:0,1,2,3 c:0,1,2,3"},  // a host without slots disappears
      {"a@c:0,2", "c:2", "a:0,1 c:0"},       {"b:1@b:3", "", "b:1,3"},
  };
  for (const FilterCase& one : cases) {
    Problems problems;
    EXPECT_EQ(text_of(filtered(three_hosts(), one.include, one.exclude, problems)), one.left);
    EXPECT_THAT(problems, testing::IsEmpty()) << one.include << " / " << one.exclude;
  }
}

TEST(Filter, NamesWhatIsNotThere) {
  const std::pair<FilterCase, const char*> cases[] = {
      {{"d", "", ""}, "d is not among the hosts"},
      {{"a:2", "", ""}, "a has the slots 0 to 1 (hosts:1)"},
      {{"a:x", "", ""}, "\"x\" is not a slot number"},
      {{"a:1,1", "", ""}, "a:1,1: names slot 1 of a twice"},
      {{"a:", "", ""}, "is not a slot number"},
      {{"a@@b", "", ""}, "names no host"},
      {{"", "a@b@c", ""}, "removes all hosts (a, b, c): keep at least one"},
      {{"a@b:1", "b@a", ""},
       "removes all hosts that --include keeps (a, b): keep at least one, or include more of the "
       "hosts "
       "a, b, c"},
  };
  for (const auto& [one, message] : cases) {
    Problems problems;
    filtered(three_hosts(), one.include, one.exclude, problems);
    ASSERT_EQ(problems.size(), 1u) << message;
    EXPECT_THAT(problems[0].what, HasSubstr(message));
    EXPECT_EQ(problems[0].place, *one.exclude == '\0' ? "--include" : "--exclude");
  }
  Problems problems;
  filtered(three_hosts(), "x@a:7@y", "z", problems);
  EXPECT_EQ(problems.size(), 4u);
}

TEST(Filter, TreatsAHostWithoutANumberOfSlotsAsAWhole) {
  Problems problems;
  const Hosts hosts = parse_host_option("a,b,c:2", problems);
  EXPECT_EQ(text_of(filtered(hosts, "a@c", "", problems)), "a c:0,1");
  EXPECT_EQ(text_of(filtered(hosts, "", "b", problems)), "a c:0,1");
  EXPECT_THAT(problems, testing::IsEmpty());
  filtered(hosts, "a:1", "", problems);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0].what, HasSubstr("a:4"));
}

TEST(Ranks, AreTheSlotsOrTheRequestedNumber) {
  Problems problems;
  Hosts hosts = parse_host_option("a,b:2,c:4", problems);
  set_ranks(hosts, 0, problems);
  EXPECT_EQ(text_of(hosts), "a:0 b:0,1 c:0,1,2,3");
  EXPECT_EQ(count_ranks(hosts), 7);
  set_ranks(hosts = parse_host_option("a,b:2,c:4", problems), 2, problems);
  EXPECT_EQ(text_of(hosts), "a:0,1 b:0,1 c:0,1");
  EXPECT_FALSE(hosts[0].is_restricted());
  EXPECT_TRUE(hosts[2].is_restricted());
  EXPECT_THAT(problems, testing::IsEmpty());
  set_ranks(hosts = parse_host_option("a,b:2,c:4", problems), 3, problems);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_THAT(problems[0].what, HasSubstr("b has 2 slots, but --ranks-per-host asks for 3"));
  EXPECT_EQ(problems[0].place, "--hosts");
}

TEST(Ranks, ThatAFilterLeavesNoSlotsForAreItsFault) {
  const auto said = [](const char* include, const char* exclude, int ranks) {
    Problems problems;
    Hosts hosts = filtered(three_hosts(), include, exclude, problems);
    set_ranks(hosts, ranks, problems);
    return problems;
  };
  EXPECT_THAT(said("c:0", "", 3),
              ElementsAre(Problem{"--include",
                                  "leaves 1 slot of 4 on c, but --ranks-per-host asks for 3: "
                                  "choose as many, or ask for fewer"}));
  EXPECT_EQ(said("b", "b:0", 4).at(0).place, "--exclude");
  EXPECT_EQ(said("b:0,1,2", "b:0", 3).at(0).place, "--include and --exclude");
  // The host itself does not have that many.
  EXPECT_THAT(said("b:0", "", 5),
              ElementsAre(Problem{"hosts:2", "b has 4 slots, but --ranks-per-host asks for 5"}));
}

TEST(HostList, AnIpv6AddressIsNamedAsSuch) {
  for (const char* address : {"::1", "fe80::1%eth0", "2001:db8::7", "[2001:db8::7]:4", "[::1]"}) {
    Problems of_option, of_file;
    parse_host_option(std::string("a:2,") + address, of_option);
    parse_hostfile(std::string("a slots=2\n") + address + " slots=2\n", "hosts", of_file);
    for (const Problems& problems : {of_option, of_file}) {
      ASSERT_EQ(problems.size(), 1u) << address;
      EXPECT_THAT(problems[0].what,
                  testing::HasSubstr("is an IPv6 address: give a name or an IPv4"));
    }
  }
  EXPECT_EQ(wrong_in_name("fe80"), "");
  EXPECT_EQ(wrong_in_name(std::string(253, 'a')), "");
  EXPECT_NE(wrong_in_name(std::string(254, 'a')), "");
}

}  // namespace
}  // namespace onebit::cluster
