// Where `onebit prepare` puts its store, and names of files in any encoding.
#include "onebit/ground/base/json.h"
#include "tests/cli/small_bert.h"

namespace onebit {
namespace {

namespace files = std::filesystem;

class PrepareCommand : public ProgramFolder {
 protected:
  PrepareCommand() { write_documents("text.txt", {"king", "bird", "river", "child"}); }

  std::string prepare(const std::string& output, const std::string& more = "",
                      const std::string& input = "text.txt") const {
    return fmt::format("prepare --input {} --output {} --vocab-size 50 --format lines {}",
                       at(input), at(output), more);
  }
  int64_t vocabulary(const std::string& store) const {
    return read_json(folder_ / store / "manifest.json").at("vocabulary_size").get<int64_t>();
  }
};

TEST_F(PrepareCommand, WritesWhereALinkLeads) {
  files::create_directories(folder_ / "disk/empty");
  files::create_symlink("disk/empty", folder_ / "to-empty");
  files::create_symlink("disk/absent", folder_ / "to-absent");
  for (const char* link : {"to-empty", "to-absent"}) {
    expect_runs(prepare(link));
    EXPECT_TRUE(files::is_symlink(folder_ / link)) << link;
    EXPECT_EQ(vocabulary(link), 50) << link;
  }
}

TEST_F(PrepareCommand, OverwritesTheTargetOfALink) {
  expect_runs(prepare("store"));
  files::create_symlink("store", folder_ / "link");
  EXPECT_EQ(run(prepare("link")).status, 1);
  const std::string smaller =
      fmt::format("prepare --input {} --output {} --vocab-size 40 --format lines --overwrite",
                  at("text.txt"), at("link"));
  expect_runs(smaller);
  EXPECT_TRUE(files::is_symlink(folder_ / "link"));
  EXPECT_EQ(vocabulary("store"), 40);
}

// Names in Latin-1 are not UTF-8.
TEST_F(PrepareCommand, AcceptsInputWhoseNameIsNotUtf8) {
  files::create_directories(folder_ / "texts");
  files::copy(folder_ / "text.txt", folder_ / "texts/b\xff.txt");
  expect_runs(prepare("store", "", "texts"));
  const Json sources = read_json(folder_ / "store/manifest.json").at("sources");
  EXPECT_TRUE(contains(sources.at(0).get<std::string>(), "texts/b\xEF\xBF\xBD.txt"))
      << json_text(sources);
  expect_runs(fmt::format("inspect {} --json", at("store")));
}

}  // namespace
}  // namespace onebit
