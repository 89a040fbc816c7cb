#include "onebit/data/formats/unpickler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"
#include "tests/formats/pickle_builder.h"

namespace onebit::formats {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Pickle unpickle(const std::string& text) {
  static const std::string place = "file.pt";
  return Unpickler(std::as_bytes(std::span(text)), place, 1000).run();
}

std::string error_of(const std::string& text) {
  return message_of([&] { unpickle(text); });
}

TEST(Unpickler, FunctionsAreRefusedByName) {
  const auto call = [](const char* module, const char* name) {
    return PickleBuilder().global(module, name).old_text("rm -rf /").op("\x85R").done();
  };
  EXPECT_THAT(error_of(call("os", "system")),
              AllOf(HasSubstr("file.pt: offset 1013: the pickle asks for \"os.system\""),
                    HasSubstr("runs nothing")));
  EXPECT_THAT(error_of(call("builtins", "eval")), HasSubstr("\"builtins.eval\""));
  EXPECT_THAT(error_of(call("torch.storage", "_load_from_bytes")),
              HasSubstr("\"torch.storage._load_from_bytes\""));
  EXPECT_THAT(error_of(call("torch.nn.modules.linear", "Linear")), HasSubstr("linear.Linear"));
  EXPECT_THAT(error_of(call("os\x1b[2J", "x")), HasSubstr("\"os\\x1b[2J.x\""));
  // A known name of another module, by the newer opcode.
  EXPECT_THAT(error_of("\x80\x04\x8c\x02os\x8c\x0bOrderedDict\x93."), HasSubstr("os.OrderedDict"));
}

TEST(Unpickler, PlainObjectsAreReadAsNothing) {
  const Pickle pickle = unpickle(PickleBuilder()
                                     .op("(")
                                     .global("argparse", "Namespace")
                                     .op(")\x81}(")  // NEWOBJ, then a state
                                     .old_text("lr")
                                     .integer(3)
                                     .op("ub")
                                     .integer(-7)
                                     .op("l")
                                     .done());
  const PickleValue& list = pickle.root_value();
  ASSERT_EQ(list.kind, PickleKind::kList);
  ASSERT_EQ(list.items.size(), 2u);
  EXPECT_EQ(pickle.values[list.items[0]].kind, PickleKind::kOther);
  EXPECT_EQ(pickle.values[list.items[1]].integer, -7);
}

TEST(Unpickler, NumbersOfEveryLength) {
  const auto number = [](std::string_view bytes) {
    return unpickle("\x80\x02\x8a" + std::string(1, static_cast<char>(bytes.size())) +
                    std::string(bytes) + ".")
        .root_value();
  };
  EXPECT_EQ(number("").integer, 0);
  EXPECT_EQ(number("\xff").integer, -1);
  EXPECT_EQ(number(std::string_view("\xff\x00", 2)).integer, 255);
  EXPECT_EQ(number("\x01\x02\x03\x04\x05\x06\x07\x80").integer,
            static_cast<int64_t>(0x8007060504030201u));
  EXPECT_EQ(number("123456789").kind, PickleKind::kOther);
}

TEST(Unpickler, DictsOfBothPythons) {
  const std::string by_items = PickleBuilder()
                                   .global("collections", "OrderedDict")
                                   .op(")R(")
                                   .old_text("a")
                                   .integer(1)
                                   .op("u}b")
                                   .done();
  const std::string by_pairs = PickleBuilder()
                                   .global("collections", "OrderedDict")
                                   .op("](]")
                                   .old_text("a")
                                   .op("a")
                                   .integer(1)
                                   .op("ae\x85R")
                                   .done();
  for (const std::string& text : {by_items, by_pairs}) {
    const Pickle pickle = unpickle(text);
    const PickleValue* value = pickle.find(pickle.root_value(), "a");
    ASSERT_NE(value, nullptr);
    EXPECT_EQ(value->integer, 1);
    EXPECT_EQ(pickle.find(pickle.root_value(), "b"), nullptr);
  }
}

TEST(Unpickler, DamagedPickles) {
  EXPECT_THAT(error_of(""), HasSubstr("truncated"));
  EXPECT_THAT(error_of("."), HasSubstr("a value is missing"));
  EXPECT_THAT(error_of("\x80\x09."), HasSubstr("protocol above 5"));
  EXPECT_THAT(error_of("t"), HasSubstr("a mark is missing"));
  EXPECT_THAT(error_of("("), HasSubstr("truncated"));
  EXPECT_THAT(error_of("N(."), HasSubstr("a value is missing"));
  EXPECT_THAT(error_of("S'text'\n."), HasSubstr("opcode 0x53"));
  EXPECT_THAT(error_of("h\x05."), HasSubstr("memo 5 is empty"));
  EXPECT_THAT(error_of("Nr\xff\xff\xff\xff."), HasSubstr("memo index out of order"));
  EXPECT_THAT(error_of("NNa."), HasSubstr("not a container"));
  EXPECT_THAT(error_of("}(Nu."), HasSubstr("not a container"));
  EXPECT_THAT(error_of("N)R."), HasSubstr("not a function"));
  EXPECT_THAT(error_of("NQ."), HasSubstr("a storage's kind is missing"));
  EXPECT_THAT(error_of("X\xff\xff\xff\xff."), HasSubstr("truncated"));
  EXPECT_THAT(error_of("ccollections"), HasSubstr("unterminated line"));
  EXPECT_THAT(error_of(PickleBuilder().old_text("module").op("N\x86Q").done()),
              HasSubstr("state_dict() instead"));
}

std::string times(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

// A list of 2^17 pairs, made into a dict again and again by six bytes each.
TEST(Unpickler, RepeatedGrowthIsRefused) {
  PickleBuilder builder;
  builder.global("collections", "OrderedDict").op("q").op(std::string(1, '\0')).op("0");
  builder.op("](")
      .op(times("]q\x02NaNa", 1))
      .op(times("h\x02", 1 << 17))
      .op("eq\x01"
          "0(");
  builder.op(times(std::string("h\0h\x01\x85R", 6), 1000)).op("l");
  EXPECT_THAT(error_of(builder.done()), HasSubstr("far more than it contains"));
}

TEST(Unpickler, ValuesAreCounted) {
  EXPECT_THAT(error_of(std::string((size_t{4} << 20) + 1, 'N')), HasSubstr("more than 4194304"));
}

TEST(Unpickler, DeepNestingNeedsNoStack) {
  EXPECT_EQ(unpickle(times("]", 1) + times("\x85", 1 << 18) + ".").root_value().items.size(), 1u);
}

}  // namespace
}  // namespace onebit::formats
