#include "onebit/data/samples/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/data/samples/sample_store.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"
#include "tests/samples/golden_samples.h"

namespace onebit::samples {
namespace {

using testing::HasSubstr;

class ImportTest : public testing::Test {
 protected:
  ImportOptions options(const std::vector<Path>& inputs) const {
    return {.inputs = inputs,
            .format = SampleFormat::kTfRecord,
            .output = folder_ / "store",
            .vocabulary = std::make_shared<const text::Vocabulary>(golden_vocabulary()),
            .vocabulary_place = "vocab.txt"};
  }

  TemporaryFolder folder_;
};

TEST_F(ImportTest, FilesOneAfterTheOther) {
  ImportOptions given = options({golden("google.tfrecord"), golden("google.tfrecord.gz")});
  std::vector<ImportProgress> reports;
  given.progress = [&](const ImportProgress& progress) { reports.push_back(progress); };
  const ImportReport report = import_samples(given);
  EXPECT_EQ(report.manifest.samples, 32u);
  EXPECT_EQ(report.manifest.format, "tfrecord");
  EXPECT_EQ(report.manifest.source_count, 2u);
  ASSERT_FALSE(reports.empty());
  EXPECT_EQ(reports.back().samples, 32u);
  EXPECT_EQ(reports.back().done_bytes, report.file_bytes);
  EXPECT_EQ(reports.back().seconds_left, 0);
  const SampleStore store(folder_ / "store");
  Sample sample;
  for (uint64_t index = 0; index < 32; ++index) {
    store.read(index, sample);
    EXPECT_EQ(in_words(sample), golden_words()[index % 16]);
  }
}

TEST_F(ImportTest, LeavesNothingOfADamagedFile) {
  std::string bytes = read_file(golden("google.tfrecord"));
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file_atomically(folder_ / "b.tfrecord", bytes);
  const ImportOptions given = options({golden("google.tfrecord"), folder_ / "b.tfrecord"});
  EXPECT_THAT(message_of([&] { import_samples(given); }), HasSubstr("b.tfrecord: record 16"));
  EXPECT_EQ(folder_.entries(), 1);
}

// The progress report may end it.
TEST_F(ImportTest, LeavesNothingWhenItIsInterrupted) {
  ImportOptions given = options({golden("google.tfrecord")});
  given.progress = [](const ImportProgress&) { fail("interrupted"); };
  EXPECT_EQ(message_of([&] { import_samples(given); }), "interrupted");
  EXPECT_EQ(folder_.entries(), 0);
}

TEST_F(ImportTest, NeedsAnExample) {
  write_file_atomically(folder_ / "empty.tfrecord", "");
  EXPECT_THAT(message_of([&] { import_samples(options({folder_ / "empty.tfrecord"})); }),
              HasSubstr("empty.tfrecord: no example was found"));
}

}  // namespace
}  // namespace onebit::samples
