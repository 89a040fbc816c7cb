// `onebit search` on the command line: an index of texts, queries, rows for a database.
#include <algorithm>

#include "tests/cli/small_bert.h"

namespace onebit {
namespace {

TEST(SearchCommand, WrongUseEndsWithTwoAndNamesTheHelp) {
  const WrongUse cases[] = {
      {"search", "onebit search", "name a command"},
      {"search index -m x -o y", "onebit search index", "--input is required"},
      {"search index -m x -i t -o y --type int4", "onebit search index", "--type"},
      {"search query a", "onebit search query", "--index is required"},
      {"search query --index x a -n 0", "onebit search query", "--count"},
      {"search query --index x", "onebit search query", "give a query"},
      {"search query --index x a -i b", "onebit search query", "give a query"},
      {"search export --index x", "onebit search export", "--output is required"},
  };
  for (const WrongUse& wrong : cases) expect_usage_error(wrong);
}

class SearchProgram : public ProgramFolder {
 protected:
  SearchProgram() {
    const std::vector<std::string> words = {"king", "bird", "river", "child", "stone", "cloud"};
    write_documents("text.txt", words);
    pretrain_bert("text.txt", 80, 2);
    std::filesystem::create_directory(folder_ / "texts");
    std::string text;
    for (const std::string& word : words) {
      for (int i = 0; i < 4; ++i) text += fmt::format("the {} was here {}\n\n", word, i);
    }
    write("texts/a.txt", text);
    write("texts/b.jsonl", "{\"text\": \"here was a\\tchild\"}\n");
  }
  std::string index(const std::string& output, const std::string& more = "") const {
    return fmt::format(
        "search index --model {} --input {} --output {} --passage-tokens 8 --device cpu "
        "--threads 1 {}",
        at("bert"), at("texts"), at(output), more);
  }
  Outcome query(const std::string& index, const std::string& more) const {
    return run(fmt::format("search query --index {} --device cpu --threads 1 {}", at(index), more));
  }
};

TEST_F(SearchProgram, FindsAPassageByItsText) {
  for (const char* type : {"f32", "int8"}) {
    const Outcome made = expect_runs(index(type, fmt::format("--type {}", type)));
    EXPECT_TRUE(contains(made.output, "25 passages")) << made.output;
    const Outcome found = query(type, "'the stone was here 2' -n 3");
    EXPECT_EQ(found.status, 0) << found.output;
    EXPECT_TRUE(contains(found.output, fmt::format("{}:37", at("texts/a.txt")))) << found.output;
    EXPECT_LT(found.output.find("the stone was here 2"), found.output.find("  2  "))
        << found.output;
  }
  // A folder that is there stays unless it is to be replaced.
  const Outcome again = run(index("f32"));
  EXPECT_EQ(again.status, 1);
  expect_runs(index("f32", "--overwrite"));
  write("f32/notes", "mine");
  const Outcome others = run(index("f32", "--overwrite"));
  EXPECT_EQ(others.status, 1);
  EXPECT_TRUE(contains(others.output, "f32: contains notes, which would be deleted"))
      << others.output;
  std::filesystem::remove(folder_ / "f32/notes");
  const Outcome itself =
      run(fmt::format("search index --model {} --input {} --output {} --device cpu --overwrite",
                      at("bert"), at("f32/passages.jsonl"), at("f32")));
  EXPECT_EQ(itself.status, 1);
  EXPECT_TRUE(contains(itself.output, "is in the output folder")) << itself.output;

  write("queries.txt", "the bird was here 0\n\nhere was a child\n");
  const Outcome all = query("f32", fmt::format("--input {} --json -n 1", at("queries.txt")));
  EXPECT_EQ(std::count(all.output.begin(), all.output.end(), '\n'), 3) << all.output;
  EXPECT_TRUE(contains(all.output, "queries.txt: 1 empty line left out")) << all.output;
  EXPECT_TRUE(contains(all.output, "\"text\":\"here was a\\tchild\"")) << all.output;

  EXPECT_TRUE(contains(
      expect_runs(fmt::format("search export --index {} --output \"{}\"", at("int8"), at("a'b")))
          .output,
      "a''b'"));
  expect_runs(fmt::format("search export --index {} --output {}", at("int8"), at("passages.tsv")));
  const std::string rows = read_file(folder_ / "passages.tsv");
  EXPECT_EQ(std::count(rows.begin(), rows.end(), '\n'), 25);
  EXPECT_TRUE(contains(rows, "\there was a\\tchild\t[")) << rows.substr(0, 500);
}

TEST_F(SearchProgram, NamesWhatIsWrong) {
  expect_runs(index("index"));
  const auto expect_error = [&](const Outcome& outcome, const std::string& word) {
    EXPECT_EQ(outcome.status, 1) << outcome.output;
    EXPECT_TRUE(contains(outcome.output, word)) << outcome.output;
  };
  expect_error(query("texts", "king"), "not an index");
  expect_error(query("index", fmt::format("king --model {}", at("texts"))), "no model");
  // Another model of the same shape.
  expect_runs(fmt::format(
      "pretrain --recipe {} --data {} --output {} --device cpu --set run.steps=2 --set run.seed=9",
      at("pretrain.json"), at("corpus"), at("other")));
  expect_error(query("index", fmt::format("king --model {}", at("other"))), "not the model");
  std::filesystem::rename(folder_ / "bert", folder_ / "moved");
  expect_error(query("index", "king"), "--model");
  EXPECT_EQ(query("index", fmt::format("king --model {}", at("moved"))).status, 0);
  std::filesystem::copy(folder_ / "moved", folder_ / "m\xff",
                        std::filesystem::copy_options::recursive);
  expect_error(run(fmt::format("search index --model {} --input {} --output {} --device cpu",
                               at("m\xff"), at("texts"), at("none"))),
               "the folder's name is not UTF-8");
  write("empty.txt", "\n");
  expect_error(run(fmt::format("search index --model {} --input {} --output {} --device cpu",
                               at("moved"), at("empty.txt"), at("none"))),
               "empty");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "none"));
}

}  // namespace
}  // namespace onebit
