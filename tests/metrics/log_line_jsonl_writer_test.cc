#include "onebit/ground/base/json.h"
#include "onebit/ground/metrics/log_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit::metrics {
namespace {

using ::testing::HasSubstr;

void put(const Path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

TEST(JsonLines, EachLineIsThereAtOnce) {
  TemporaryFolder folder;
  const Path path = folder / "metrics.jsonl";
  JsonLinesWriter writer(path, kNoStep);
  writer.write({{"step", 1}, {"loss", 7.25}, {"phase", "warmup"}});
  EXPECT_EQ(read_file(path), "{\"step\":1,\"loss\":7.25,\"phase\":\"warmup\"}\n");
  writer.write({{"step", 2}, {"loss", NAN}, {"text", "\xff"}});
  EXPECT_THAT(read_file(path), HasSubstr("\n{\"step\":2,\"loss\":null,"));
}

TEST(JsonLines, UpdatesAreCountedByTheBeginningsOfLines) {
  TemporaryFolder folder;
  const Path path = folder / "metrics.jsonl";
  EXPECT_EQ(count_steps(path, 5), 0);
  {
    JsonLinesWriter writer(path, kNoStep);
    for (const auto kind : {log_line::Kind::kStart, log_line::Kind::kStep}) {
      for (const int64_t step : {0, 4, 5, 6}) writer.write(log_line::begun(kind, step));
    }
    Json longer = log_line::begun(log_line::Kind::kStep, 3);
    longer["loss"] = 2.5;
    writer.write(longer);
  }
  put(path, read_file(path) + "{\"kind\":\"step\",\"step\":1,\"lo");  // cut short by a kill
  EXPECT_EQ(count_steps(path, 5), 4);
  EXPECT_EQ(count_steps(path, 0), 1);
}

TEST(JsonLines, ResumeDropsLaterStepsAndATornLine) {
  TemporaryFolder folder;
  const Path path = folder / "metrics.jsonl";
  put(path,
      "{\"step\":0}\n{\"step\":5}\n{\"step\":6, "
      "\"held_out\":{}}\n{\"step\":7}\n{\"step\":6}\n{\"st");
  {
    JsonLinesWriter writer(path, 6);
    writer.write({{"step", 7}});
  }
  EXPECT_EQ(
      read_file(path),
      "{\"step\":0}\n{\"step\":5}\n{\"step\":6, \"held_out\":{}}\n{\"step\":6}\n{\"step\":7}\n");
  EXPECT_EQ(folder.entries(), 1);
}

TEST(JsonLines, NothingToDropLeavesTheFileAlone) {
  TemporaryFolder folder;
  const Path path = folder / "metrics.jsonl";
  put(path, "{\"step\":1}\n");
  std::filesystem::create_hard_link(path, folder / "same");
  JsonLinesWriter writer(path, 1);
  EXPECT_TRUE(std::filesystem::equivalent(path, folder / "same"));  // not rewritten
  EXPECT_EQ(folder.entries(), 2);
}

TEST(JsonLines, ANewRunStartsEmpty) {
  TemporaryFolder folder;
  const Path path = folder / "metrics.jsonl";
  put(path, "not json\n");
  JsonLinesWriter writer(path, kNoStep);
  EXPECT_EQ(read_file(path), "");
}

TEST(JsonLines, BrokenLinesAreNamedAndLeftOutAndTheFileIsKept) {
  TemporaryFolder folder;
  const Path path = folder / "metrics.jsonl";
  for (const std::string line : {"{\"step\":", "{\"loss\":3}", "[3]", "{\"step\":1.5}"}) {
    const std::string content = "{\"step\":1}\n" + line + "\n{\"step\":9}\n";
    put(path, content);
    testing::internal::CaptureStderr();
    JsonLinesWriter writer(path, 1);
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("metrics.jsonl, line 2"));
    EXPECT_EQ(read_file(path), "{\"step\":1}\n");
    EXPECT_EQ(read_file(folder / "metrics.jsonl.damaged"), content);
    EXPECT_EQ(folder.entries(), 2);
  }
}

TEST(JsonLines, AFileThatIsGoneIsBegunAnew) {
  TemporaryFolder folder;
  const Path path = folder / "metrics.jsonl";
  testing::internal::CaptureStderr();
  JsonLinesWriter writer(path, 40);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("logs from the step after 40"));
  EXPECT_EQ(read_file(path), "");
}

}  // namespace
}  // namespace onebit::metrics
