#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "onebit/ground/base/checksum.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/metrics/tensorboard.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit::metrics {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// The events of a file, every length and checksum verified.
std::vector<std::string> events_of(const std::string& file) {
  std::vector<std::string> events;
  const auto number = [&]<typename T>(size_t offset, T value) {
    std::memcpy(&value, file.data() + offset, sizeof value);
    return value;
  };
  for (size_t at = 0; at < file.size();) {
    if (at + 16 > file.size()) throw Error("a record is cut");
    const auto length = number(at, uint64_t{0});
    EXPECT_EQ(number(at + 8, uint32_t{0}), mask_crc32c(crc32c(file.data() + at, 8)));
    if (length > file.size() - at - 16) throw Error("a record is cut");
    events.push_back(file.substr(at + 12, length));
    EXPECT_EQ(number(at + 12 + length, uint32_t{0}),
              mask_crc32c(crc32c(events.back().data(), length)));
    at += 16 + length;
  }
  return events;
}

std::string golden(const std::string& name) {
  return read_file(Path(ONEBIT_SOURCE_DIR) / "tests/metrics/golden" / name);
}

// The golden files hold what TensorBoard's own protocol buffers serialize for these events
// (tools/make_event_goldens.py).
TEST(TensorBoardEvent, EqualsTheRealSerializer) {
  const EventTime time{1234567890.25, 300};
  const std::vector<Scalar> scalars = {{"loss/mlm", 6.5}, {"learning_rate", 1e-4}, {"none", NAN}};
  const std::string file = record_of(version_event(time)) + record_of(session_start_event(time)) +
                           record_of(scalars_event(time, scalars));
  EXPECT_EQ(file, golden("events.tfevents"));
  EXPECT_EQ(events_of(file).size(), 3u);
}

TEST(TensorBoardWriter, FileGrowsByWholeRecords) {
  TemporaryFolder folder;
  TensorBoardWriter writer(folder / "events", kNoStep);
  EXPECT_THAT(writer.path().filename().string(), StartsWith("events.out.tfevents."));
  EXPECT_EQ(events_of(read_file(writer.path())).size(), 1u);
  const std::vector<Scalar> scalars = {{"loss", 1.0}};
  writer.scalars(1, scalars);
  writer.scalars(2, scalars);
  const auto events = events_of(read_file(writer.path()));
  ASSERT_EQ(events.size(), 3u);
  EXPECT_THAT(events[0], HasSubstr("brain.Event:2"));
  EXPECT_THAT(events[2], HasSubstr("loss"));
}

TEST(TensorBoardWriter, ResumeWritesANewFileThatDropsLaterSteps) {
  TemporaryFolder folder;
  const TensorBoardWriter first(folder.path(), kNoStep), second(folder.path(), 10);
  EXPECT_NE(first.path(), second.path());
  const auto events = events_of(read_file(second.path()));
  ASSERT_EQ(events.size(), 2u);
  // wall time (1 + 8 bytes), key of the step, 11, session log {status: START}
  EXPECT_EQ(events[1].substr(9), std::string("\x10\x0b\x3a\x02\x08\x01", 6));
}

TEST(TensorBoardWriter, FolderThatCannotBe) {
  TemporaryFolder folder;
  EXPECT_THAT(message_of([&] { TensorBoardWriter writer("/proc/none", kNoStep); }),
              HasSubstr("/proc/none: cannot make the folder"));
}

}  // namespace
}  // namespace onebit::metrics
