// Options that are other names of keys of a recipe.
#include "onebit/training/commands/key_options.h"

#include "tests/cli/program.h"

namespace onebit {
namespace {

TEST(KeyOptions, LimitsAreThoseOfTheKey) {
  const WrongUse cases[] = {
      {"embed train -m m --train t -o o -r r --score-scale 0", "onebit embed train",
       "--score-scale: must be a number above 0, got 0"},
      {"embed train -m m --train t -o o -r r --score-scale nan", "onebit embed train",
       "must be a number above 0, got nan"},
      {"classify predict -m m -i i -o o --max-sequence-length 3", "onebit classify predict",
       "--max-sequence-length: must be a whole number of at least 4, got 3"},
      {"tag predict -m m -i i -o o --stride 08", "onebit tag predict", "without leading zeros"},
      {"classify predict -m m -i i -o o --threshold 00.5", "onebit classify predict", "got 00.5"},
      {"tag train -m m --train t -o o -r r --scheme bio", "onebit tag train", "iob2"},
      {"tag train -m m --train t -o o -r r --tokens \"\"", "onebit tag train", "must not be empty"},
      {"tag train -m m --train t -o o -r r --tokens $(printf '\\377')", "onebit tag train",
       "not UTF-8"},
  };
  for (const WrongUse& wrong : cases) expect_usage_error(wrong);
}

TEST(KeyOptions, HelpIsTheKeysMeaningAndNamesTheKey) {
  std::string help = run("classify predict --help").output;
  std::erase(help, '\n');  // lines are folded
  while (contains(help, "  ")) help.replace(help.find("  "), 2, " ");
  EXPECT_TRUE(contains(help, "The probability above which a label is present")) << help;
  EXPECT_TRUE(contains(help, "default: the recipe's, else 0.5 (classify.threshold)")) << help;
  EXPECT_TRUE(contains(help, "Set data.header to no: ")) << help;
}

TEST(KeyOptions, EveryCommandWithARecipeHasSet) {
  for (const char* command :
       {"pretrain", "evaluate", "squad train", "squad predict", "squad ask", "squad windows",
        "classify train", "classify predict", "classify evaluate", "tag train", "tag predict",
        "tag evaluate", "embed train", "embed encode", "embed evaluate"}) {
    const std::string help = run(std::string(command) + " --help").output;
    EXPECT_TRUE(contains(help, "--set TEXT")) << command << help;
  }
}

// Options take precedence, whatever their order.
TEST(KeyOptions, OptionsComeAfterSet) {
  const commands::Overrides overrides = {.set = {"data.text=a"}, .options = {"data.text=b"}};
  EXPECT_EQ(overrides.all(), (std::vector<std::string>{"data.text=a", "data.text=b"}));
}

}  // namespace
}  // namespace onebit
