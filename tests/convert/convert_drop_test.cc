// Which tensors of a checkpoint become tensors of the model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"
#include "tests/convert/changed_model.h"

namespace onebit::convert {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Convert, AClassifierOfNoColumnsHasNoClasses) {
  TemporaryFolder folder;
  Changed model;
  model.erase("cls.");
  model.add("classifier.weight", {int64_t{1} << 59, 0});
  model.add("classifier.bias", {0});
  EXPECT_THAT(message_of([&] {
                convert(options_for(model.write(folder / "m.safetensors"), folder / "out"));
              }),
              HasSubstr("\"classifier.weight\": [1, 8] wanted, [576460752303423488, 0] found"));
}

TEST(Convert, OneOfTwoEncodersIsChosenByDropping) {
  TemporaryFolder folder;
  Changed both;
  both.erase("");
  both.add(Changed(), "student.");
  both.add(Changed(), "teacher.");
  ConvertOptions options = options_for(both.write(folder / "m.safetensors"), folder / "out");
  EXPECT_THAT(message_of([&] { convert(options); }),
              HasSubstr("contains 2 encoders, whose names begin with \"student.\", \"teacher.\""));
  options.drop = {"teacher.", "cls."};
  EXPECT_THAT(joined(convert(options)),
              AllOf(HasSubstr("names: the prefix \"student.\" was removed from all names"),
                    HasSubstr("as requested by --drop"), HasSubstr("BertModel")));
}

TEST(Convert, DroppedTensorsAreReported) {
  TemporaryFolder folder;
  Changed model;
  model.add("adapter.weight", {3});
  ConvertOptions options = options_for(model.write(folder / "m.safetensors"), folder / "out");
  options.drop = {"adapter.", "cls."};
  EXPECT_THAT(joined(convert(options)), HasSubstr("left out: 8 tensors, as adapter.weight"));
  options.output = folder / "again";
  options.drop = {"adaptor."};
  EXPECT_THAT(message_of([&] { convert(options); }), HasSubstr("--drop adaptor.: no tensor name"));
}

}  // namespace
}  // namespace onebit::convert
