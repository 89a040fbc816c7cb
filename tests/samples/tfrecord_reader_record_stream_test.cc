#include "onebit/data/samples/tfrecord_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"
#include "tests/samples/quick_file.h"
#include "tests/samples/record_file.h"

namespace onebit::samples {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class RecordStreamTest : public testing::Test {
 protected:
  // The records of a file with this content.
  std::vector<std::string> read(const std::string& content) {
    const Path path = folder_ / "a.tfrecord";
    write_quickly(path, content);
    RecordStream stream(corpus::open_byte_stream(path, "a.tfrecord"), "a.tfrecord");
    std::vector<std::string> records;
    for (std::string record; stream.read(record);) records.push_back(record);
    return records;
  }
  std::string message(const std::string& content) {
    return message_of([&] { read(content); });
  }

  TemporaryFolder folder_;
};

TEST_F(RecordStreamTest, GivesTheRecordsInOrder) {
  const std::string long_one(3 << 20, 'x');
  EXPECT_THAT(read(record_of("first") + record_of("") + record_of(long_one)),
              ElementsAre("first", "", long_one));
  EXPECT_THAT(read(""), ElementsAre());
}

TEST_F(RecordStreamTest, KnowsWhereARecordLies) {
  write_quickly(folder_ / "b", record_of("first") + record_of("second"));
  RecordStream stream(corpus::open_byte_stream(folder_ / "b", "b"), "b");
  std::string record;
  stream.read(record);
  stream.read(record);
  EXPECT_EQ(stream.place(), "b: record 2 (byte 21)");
  EXPECT_EQ(stream.content_offset(), 33u);
}

TEST_F(RecordStreamTest, NoticesEveryChangedBit) {
  const std::string content = record_of("first") + record_of("second");
  for (size_t at = 0; at < content.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = content;
      changed[at] = static_cast<char>(changed[at] ^ 1 << bit);
      EXPECT_THAT(message(changed), HasSubstr("a.tfrecord")) << at << " " << bit;
    }
  }
  std::string changed = content;
  changed[22] = 'x';
  EXPECT_THAT(message(changed),
              AllOf(HasSubstr("record 2 (byte 21)"), HasSubstr("checksum of its length")));
}

TEST_F(RecordStreamTest, NoticesWhereItWasCutShort) {
  const std::string content = record_of("first") + record_of("second");
  for (size_t size = 1; size < content.size(); ++size) {
    if (size == record_of("first").size()) continue;  // a sound file of one record
    EXPECT_THAT(message(content.substr(0, size)), HasSubstr("the file is truncated")) << size;
  }
}

TEST_F(RecordStreamTest, RefusesARecordThatClaimsTooMuch) {
  EXPECT_THAT(message(record_header(uint64_t{1} << 40)), HasSubstr("too long for an example"));
  EXPECT_THAT(message(record_header(RecordStream::kMaxRecordBytes) + "a few bytes"),
              HasSubstr("the file is truncated"));
}

TEST_F(RecordStreamTest, ReportsWhatElseTheFileIs) {
  EXPECT_THAT(message("once upon a time there was"), HasSubstr("is not a TFRecord file"));
  EXPECT_THAT(message(std::string("\x78\x9c\x4b\xcc", 4) + "0123456789"),
              AllOf(HasSubstr("is zlib-compressed"), HasSubstr("GZIP")));
}

// 35615 is 0x8b1f, and gzip files start with 1f 8b.
TEST_F(RecordStreamTest, ALengthThatLooksLikeGzipIsALength) {
  const std::string record(0x8b1f, 'x');
  EXPECT_THAT(read(record_of(record)), ElementsAre(record));
}

}  // namespace
}  // namespace onebit::samples
