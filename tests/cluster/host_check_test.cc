#include "onebit/program/cluster/host_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"
#include "tests/base/temporary_folder.h"

namespace onebit::cluster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

HostFacts facts() {
  return {
      .onebit = "0.1.0",
      .program_checksum = "aa",
      .mpi = "Open MPI v4.1.4",
      .instruction_set = "AVX2",
      .cores = 8,
      .allowed_cores = 8,
      .numa_nodes = 1,
      .available_bytes = 8'000'000'000,
      .load = 0.5,
      .inputs = {{.path = "r.json", .kind = "file", .checksum = "01"},
                 {.path = "corpus", .kind = "token store", .checksum = "02", .vocabulary = "03"}},
      .time = 1e9};
}

CheckedHost host(const char* name, HostFacts own = facts()) {
  return {.name = name, .facts = std::move(own), .failure = {}};
}

const Hosts kTwo = {make_host("a", 2, ""), make_host("b", 2, "")};

CheckFindings compared(const HostFacts& second, const Needs& needs = {}) {
  return compare_hosts({host("a"), host("b", second)}, kTwo, needs);
}

TEST(HostCheck, FindsNothingWhereHostsAreAlike) {
  const CheckFindings found = compared(facts(), {.bytes_per_rank = 1'000'000'000, .threads = 4});
  EXPECT_THAT(found.wrong, IsEmpty());
  EXPECT_THAT(found.notes, IsEmpty());
}

TEST(HostCheck, FindsEverythingThatDiffers) {
  HostFacts other = facts();
  other.onebit = "0.2.0";
  other.mpi = "Open MPI v5";
  other.inputs[0].checksum = "ff";
  other.inputs[1].vocabulary = "ff";
  const CheckFindings found = compared(other);
  ASSERT_EQ(found.wrong.size(), 4u);
  EXPECT_EQ(found.wrong[0].place, "b");
  EXPECT_THAT(found.wrong[0].what, HasSubstr("onebit 0.2.0, but on a it is 0.1.0"));
  EXPECT_THAT(found.wrong[1].what, HasSubstr("Open MPI v5"));
  EXPECT_THAT(found.wrong[2].what, HasSubstr("r.json: different content"));
  EXPECT_THAT(found.wrong[3].what, HasSubstr("corpus: a different vocabulary"));
}

TEST(HostCheck, NamesTheOneThatDiffersFromMostWhereverItStands) {
  HostFacts other = facts();
  other.onebit = "0.2.0";
  other.inputs[0].checksum = "ff";
  const Hosts three = {make_host("a", 1, ""), make_host("b", 1, ""), make_host("c", 1, "")};
  const auto found = compare_hosts({host("a", other), host("b"), host("c")}, three, {}).wrong;
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].place, "a");
  EXPECT_THAT(found[0].what, HasSubstr("onebit 0.2.0, but on b, c it is 0.1.0"));
  EXPECT_EQ(found[1].place, "a");
  EXPECT_THAT(found[1].what,
              HasSubstr("r.json: different content than on b, c: copy it from there"));
  EXPECT_THAT(alike_hosts({host("a", other), host("b"), host("c")}), ElementsAre("b", "c"));
}

TEST(HostCheck, ComparesWithWhatIsExpected) {
  const std::optional<Expected> expected = Expected{.facts = facts(),
                                                    .where = "when this launch began",
                                                    .remedy = "restore the previous content"};
  HostFacts other = facts();
  other.inputs[1].checksum = "ff";
  const std::vector<CheckedHost> alike = {host("a", other), host("b", other)};
  EXPECT_THAT(compare_hosts(alike, kTwo, {}).wrong, IsEmpty());
  const auto found = compare_hosts(alike, kTwo, {}, expected).wrong;
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].what,
            "corpus: different content than when this launch began: restore the previous content");
  // If nothing is expected of an input, it must be what most hosts have.
  std::optional<Expected> less = expected;
  less->facts.inputs.pop_back();
  EXPECT_THAT(compare_hosts(alike, kTwo, {}, less).wrong, IsEmpty());
  less->facts.inputs.push_back({.path = "corpus", .error = "corpus: does not exist"});
  EXPECT_THAT(compare_hosts(alike, kTwo, {}, less).wrong, IsEmpty());
  less->facts.onebit = "0.0.9";
  EXPECT_EQ(compare_hosts(alike, kTwo, {}, less).wrong.size(), 2u);
  EXPECT_THAT(alike_hosts(alike, less), IsEmpty());
}

TEST(HostCheck, FindsInputsThatAreMissing) {
  HostFacts other = facts();
  other.inputs[1] = {.path = "corpus", .error = "corpus: does not exist"};
  EXPECT_THAT(compared(other).wrong, ElementsAre(Problem{"b", "corpus: does not exist"}));
  // The first host's own do not make the others differ.
  const CheckFindings first = compare_hosts({host("a", other), host("b")}, kTwo, {});
  EXPECT_THAT(first.wrong, ElementsAre(Problem{"a", "corpus: does not exist"}));
}

TEST(HostCheck, ComparesMemoryWithTheRanksOfAHost) {
  HostFacts small = facts();
  small.available_bytes = 3'000'000'000;
  EXPECT_THAT(compared(small, {.bytes_per_rank = 1'400'000'000}).wrong, IsEmpty());
  const auto found = compared(small, {.bytes_per_rank = 1'600'000'000}).wrong;
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].what, HasSubstr("2 ranks need 3.20 GB of memory, 3.00 GB are free"));
  HostFacts limited = facts();
  limited.limit_bytes = 1'000'000'000;
  EXPECT_EQ(compared(limited, {.bytes_per_rank = 600'000'000}).wrong.size(), 1u);
}

TEST(HostCheck, LooksAtTheFolderOfTheRun) {
  HostFacts own = facts();
  own.output = OutputFacts{.path = "runs/a", .free_bytes = 3'000'000};
  EXPECT_THAT(compared(own).wrong, IsEmpty());
  EXPECT_THAT(compared(own, {.checkpoint_bytes = 3'000'000}).wrong, IsEmpty());
  const auto found = compared(own, {.checkpoint_bytes = 4'000'000}).wrong;
  ASSERT_EQ(found.size(), 1u);
  EXPECT_THAT(found[0].what,
              HasSubstr("runs/a: 3.00 MB are free, one checkpoint takes at least 4.00 MB"));
  own.output->free_bytes = 0;  // the file system does not report it
  EXPECT_THAT(compared(own, {.checkpoint_bytes = 4'000'000}).wrong, IsEmpty());
  own.output->error = "runs/a: cannot be written to";
  EXPECT_THAT(compared(own).wrong, ElementsAre(Problem{"b", "runs/a: cannot be written to"}));
}

TEST(HostCheck, NotesWhatIsOnlySlowOrStrange) {
  HostFacts other = facts();
  other.program_checksum = "bb";
  other.instruction_set = "AVX512";
  other.allowed_cores = 4;
  std::vector<CheckedHost> hosts = {host("a"), host("b", other)};
  hosts[1].clock_seconds = -30;
  hosts[1].clock_error = 0.2;
  const CheckFindings found = compare_hosts(hosts, kTwo, {.threads = 4});
  EXPECT_THAT(found.wrong, IsEmpty());
  ASSERT_EQ(found.notes.size(), 4u);
  EXPECT_THAT(found.notes[0].what, HasSubstr("a different build"));
  EXPECT_THAT(found.notes[1].what, HasSubstr("AVX512"));
  EXPECT_THAT(found.notes[2].what, HasSubstr("2 ranks of 4 threads share 4 cores"));
  const auto bound = compare_hosts(hosts, kTwo, {.threads = 4, .binds = true}).wrong;
  ASSERT_EQ(bound.size(), 1u);
  EXPECT_THAT(bound[0].what, HasSubstr("or leave out --bind core"));
  EXPECT_THAT(found.notes[3].what, HasSubstr("30.0 s behind"));
  // A slow answer does not determine the clock precisely.
  hosts[1].clock_error = 29;
  EXPECT_EQ(compare_hosts(hosts, kTwo, {.threads = 4}).notes.size(), 3u);
}

TEST(HostCheck, ListsHostsThatDoNotAnswerBesideWhatIsWrongOnOthers) {
  HostFacts other = facts();
  other.onebit = "0.2.0";
  const CheckedHost silent = {.name = "b", .facts = std::nullopt, .failure = "does not answer"};
  const auto found = compare_hosts({silent, host("a"), host("c", other)}, kTwo, {}).wrong;
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].place, "c");
  EXPECT_EQ(found[1], (Problem{"b", "does not answer"}));
}

TEST(HostCheck, CountsCoresThatAControlGroupLeaves) {
  HostFacts own = facts();
  EXPECT_EQ(usable_cores(host("a", own)), 8);
  own.quota_processors = 2.5;
  EXPECT_EQ(usable_cores(host("a", own)), 2);
  EXPECT_EQ(usable_cores({.name = "a", .facts = std::nullopt, .failure = "x"}), 0);
}

// Uses a stub of ssh: facts after a greeting, another program, a clock that is ahead.
TEST(HostCheck, ReadsAnswersOfHosts) {
  const TemporaryFolder folder;
  HostFacts ahead = facts();
  ahead.time = 4e9;
  write_file_atomically(folder / "a.json", "Welcome to a\n" + to_json(ahead).dump(2) + "\n");
  write_file_atomically(folder / "b.json", "{\"version\": 1}\n");
  write_file_atomically(folder / "agent",
                        "cat " + (folder / "").string() + "$1.json || exit 255\n");
  const Agent agent = {.words = {"sh", (folder / "agent").string()}};
  const auto checked = check_hosts(agent, {"a", "b", "c"}, {"x"}, "/", 10, [] { return false; });
  ASSERT_EQ(checked.size(), 3u);
  ASSERT_TRUE(checked[0].facts);
  EXPECT_GT(checked[0].clock_seconds, 1e9);
  EXPECT_THAT(checked[1].failure, HasSubstr("another program"));
  EXPECT_THAT(checked[2].failure, HasSubstr("cannot be reached"));
  const std::string table = host_table(checked);
  EXPECT_THAT(table, HasSubstr("AVX2"));
  EXPECT_THAT(table, HasSubstr("\nb "));
  EXPECT_THAT(table, HasSubstr("\nc "));
}

}  // namespace
}  // namespace onebit::cluster
