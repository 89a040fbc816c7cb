#include "onebit/data/samples/hdf5_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"
#include "tests/samples/golden_samples.h"
#include "tests/samples/quick_file.h"

namespace onebit::samples {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Hdf5ReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string message = message_of([] { open_hdf5(golden("nvidia.hdf5")); });
    if (message.find("without HDF5") != std::string::npos) GTEST_SKIP() << message;
  }
  static std::string message(const Path& path) {
    return message_of([&] { words_of(*open_hdf5(path)); });
  }

  TemporaryFolder folder_;
};

TEST_F(Hdf5ReaderTest, GivesWhatItsWriterMeant) {
  for (const char* name : {"nvidia.hdf5", "int64.hdf5", "lists.hdf5"}) {
    EXPECT_EQ(words_of(*open_hdf5(golden(name))), golden_words()) << name;
  }
}

TEST_F(Hdf5ReaderTest, MaskAndLabelsMayBeMissing) {
  std::vector<std::string> words;
  for (Sample& sample : golden_samples()) {
    sample.next_sentence = kNoLabel;
    words.push_back(in_words(sample));
  }
  words.resize(4);
  EXPECT_EQ(words_of(*open_hdf5(golden("no_labels.hdf5"))), words);
}

TEST_F(Hdf5ReaderTest, NamesTheRow) {
  const auto reader = open_hdf5(golden("nvidia.hdf5"));
  PaddedSample sample;
  reader->read(sample);
  reader->read(sample);
  EXPECT_EQ(sample.place, golden("nvidia.hdf5").string() + ": row 1");
}

TEST_F(Hdf5ReaderTest, ReportsWhatItDoesNotRead) {
  EXPECT_THAT(message(golden("lzf.hdf5")),
              AllOf(HasSubstr("lzf.hdf5: dataset input_ids"), HasSubstr("lzf"),
                    HasSubstr("h5repack -f GZIP=4")));
  EXPECT_THAT(message(golden("no_ids.hdf5")), HasSubstr("has no dataset masked_lm_ids"));
  EXPECT_THAT(message(golden("floats.hdf5")),
              HasSubstr("dataset segment_ids: is not an integer dataset"));
  EXPECT_THAT(message(golden("half.hdf5")),
              HasSubstr("dataset masked_lm_ids: 1 of its 2 chunks are stored"));
  EXPECT_THAT(message(golden("google.tfrecord")), HasSubstr("is not an HDF5 file"));
  EXPECT_THAT(message(folder_ / "nowhere.hdf5"), HasSubstr("nowhere.hdf5: no such file"));
}

// A truncated or damaged file gives one error that names it, or its content if nothing reads the
// damaged bytes, and never a crash of this process.
TEST_F(Hdf5ReaderTest, OneErrorWhereverItIsDamaged) {
  const Path path = folder_ / "a.hdf5";
  const std::string bytes = read_file(golden("lists.hdf5"));
  const auto expect_sound_end = [&](size_t at) {
    const std::string found = message(path);
    if (found != "(no error)") {
      EXPECT_THAT(found, HasSubstr("a.hdf5")) << at;
    }
    return found != "(no error)";
  };
  for (size_t at = 0; at < bytes.size(); at += 97) {
    write_quickly(path, bytes.substr(0, at));
    EXPECT_TRUE(expect_sound_end(at)) << "cut short at " << at;
  }
  size_t errors = 0;
  // If this byte is changed, the file keeps libhdf5 busy until its time limit.
  constexpr size_t kEndless = 8979;
  for (size_t at = 0; at < bytes.size(); at += 41) {
    if (at == kEndless) continue;
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0xa5);
    write_quickly(path, changed);
    errors += expect_sound_end(at) ? 1 : 0;
  }
  EXPECT_GT(errors, 20u);
}

// The packed numbers of NVIDIA's files carry a checksum of zlib.
// libhdf5 would allocate and fill 16 GiB for the first list.
TEST_F(Hdf5ReaderTest, ADamagedLengthIsNotAllocated) {
  std::string bytes = read_file(golden("lists.hdf5"));
  constexpr size_t kFirstLength = 2048;  // of input_ids
  ASSERT_EQ(bytes.substr(kFirstLength, 4), std::string("\x18\0\0\0", 4));
  bytes.replace(kFirstLength, 4, "\xff\xff\xff\x7f");
  write_file_atomically(folder_ / "long.hdf5", bytes);
  EXPECT_THAT(message(folder_ / "long.hdf5"),
              HasSubstr("input_ids: rows 0 to 15 cannot be read: the file is damaged"));
}

TEST_F(Hdf5ReaderTest, NoticesDamagedPackedNumbers) {
  const std::string bytes = read_file(golden("nvidia.hdf5"));
  const size_t packed = bytes.find("\x78\x5e");
  ASSERT_NE(packed, std::string::npos);
  std::string changed = bytes;
  changed[packed + 20] = static_cast<char>(changed[packed + 20] ^ 0x10);
  write_quickly(folder_ / "a.hdf5", changed);
  EXPECT_THAT(message(folder_ / "a.hdf5"),
              AllOf(HasSubstr("a.hdf5: dataset"), HasSubstr("cannot be read")));
}

// The process that reads ahead ends with the reader.
TEST_F(Hdf5ReaderTest, MayBeLeftInTheMiddle) {
  for (int i = 0; i < 3; ++i) {
    const auto reader = open_hdf5(golden("nvidia.hdf5"));
    PaddedSample sample;
    EXPECT_TRUE(reader->read(sample));
  }
}

}  // namespace
}  // namespace onebit::samples
