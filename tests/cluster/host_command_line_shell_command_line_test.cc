#include "onebit/program/cluster/host_command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"

namespace onebit::cluster {
namespace {

TEST(ShellWords, AreQuotedWhereAShellWouldReadThemDifferently) {
  EXPECT_EQ(shell_line({"run", "a b", "c"}), "run 'a b' c");
}

TEST(ShellWords, AreSplitAsAShellDoes) {
  using testing::ElementsAre;
  EXPECT_THAT(split_words(" ssh  -o 'A b' \"c'd\" e\\ f '' ", "x"),
              ElementsAre("ssh", "-o", "A b", "c'd", "e f", ""));
  EXPECT_THAT(message_of([] { split_words("a 'b", "--agent"); }),
              testing::HasSubstr("--agent: a 'b: the quote ' is not closed"));
}

TEST(ShellWords, AreTheSameAfterQuotingAndSplitting) {
  const Words words = {"", "'", "\"", "\\", "a b", "$(x)", "a\tb", "*", "#"};
  EXPECT_EQ(split_words(shell_line(words), "x"), words);
}

}  // namespace
}  // namespace onebit::cluster
