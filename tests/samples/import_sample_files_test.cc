#include "onebit/data/samples/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit::samples {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class SampleFilesTest : public testing::Test {
 protected:
  Path touch(const std::string& name) {
    write_file_atomically(folder_ / name, "");
    return folder_ / name;
  }
  std::string message(const Path& input, SampleFormat format = SampleFormat::kHdf5) {
    return message_of([&] { find_sample_files({input}, format); });
  }

  TemporaryFolder folder_;
};

TEST_F(SampleFilesTest, FoldersAndPatterns) {
  const Path b = touch("b.hdf5"), a = touch("a.hdf5"), h5 = touch("c.h5");
  touch("readme.txt");
  touch(".hidden.hdf5");
  const SampleFiles folder = find_sample_files({folder_.path()}, SampleFormat::kHdf5);
  EXPECT_THAT(folder.files, ElementsAre(a, b, h5));
  EXPECT_THAT(folder.ignored, SizeIs(1));
  EXPECT_THAT(find_sample_files({folder_ / "*.hdf5"}, SampleFormat::kHdf5).files,
              ElementsAre(a, b));
  EXPECT_THAT(find_sample_files({h5, a}, SampleFormat::kHdf5).files, ElementsAre(h5, a));
}

TEST_F(SampleFilesTest, NamesOfRecords) {
  const Path plain = touch("a.tfrecord"), packed = touch("b.tfrecord.gz"),
             part = touch("c.tfrecord-00000-of-00002"), other = touch("d.tf_record");
  touch("e.hdf5");
  EXPECT_THAT(find_sample_files({folder_.path()}, SampleFormat::kTfRecord).files,
              ElementsAre(plain, packed, part, other));
}

TEST_F(SampleFilesTest, AFileMayBeNamedLikeAPattern) {
  const Path path = touch("a[1].hdf5");
  EXPECT_THAT(find_sample_files({path}, SampleFormat::kHdf5).files, ElementsAre(path));
}

TEST_F(SampleFilesTest, RefusesWhatIsNotThere) {
  EXPECT_THAT(message(folder_ / "nowhere"), HasSubstr("no such file or folder"));
  EXPECT_THAT(message(folder_ / "*.hdf5"), HasSubstr("no file matches"));
  EXPECT_THAT(message(folder_.path()), HasSubstr("contains no file named .hdf5"));
  EXPECT_THAT(message("-"), HasSubstr("standard input"));
}

TEST_F(SampleFilesTest, RefusesTrainingAndTestTogether) {
  touch("books_training_0.hdf5");
  touch("books_test_0.hdf5");
  EXPECT_THAT(message(folder_.path()), HasSubstr("*_training_*"));
  EXPECT_THAT(find_sample_files({folder_ / "*_training_*"}, SampleFormat::kHdf5).files, SizeIs(1));
}

TEST_F(SampleFilesTest, RefusesAFileTwice) {
  const Path path = touch("a.hdf5");
  EXPECT_THAT(message_of([&] {
                find_sample_files({path, folder_.path()}, SampleFormat::kHdf5);
              }),
              HasSubstr("is given twice"));
}

}  // namespace
}  // namespace onebit::samples
