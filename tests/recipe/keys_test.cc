// Reading the keys of a recipe, and the table that the reading makes.
#include "onebit/ground/recipe/keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "onebit/ground/base/json.h"
#include "onebit/ground/recipe/key_rows.h"
#include "tests/base/message_of.h"

namespace onebit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Keys keys_of(std::string_view text) {
  return {parse_json(text, "recipe.json"), "recipe.json"};
}

enum class Colour { kRed, kGreen };

// A section with a key of every form.
struct Options {
  int64_t count = 3;
  std::optional<int64_t> size;
  double share = 0.5;
  std::optional<double> factor;
  bool on = true;
  std::string label = "x", backend;
  Colour colour = Colour::kGreen;
  std::array<double, 2> betas = {0.9, 0.999};
  double rate = 1e-3;
  std::optional<int64_t> freeze = 10;
  std::map<std::string, int64_t> rows;
  std::map<std::string, double> weights;
  std::string weighting = "none";
  std::vector<std::string> names;
};

Options read(Keys& keys) {
  Options options;
  keys.integer("count", options.count, at_least(1), "how many");
  keys.integer("size", options.size, at_least(1).up_to(9), {"how large", "as large as it is"});
  keys.number("share", options.share, at_least(0).below(1), "which part");
  keys.number("factor", options.factor, above(0), "how much");
  keys.boolean("on", options.on, "whether");
  keys.text("label", options.label, "what it is called");
  keys.word("backend", options.backend, {"nccl", "mpi"}, "through what");
  keys.choice("colour", options.colour, {{"red", Colour::kRed}, {"green", Colour::kGreen}},
              "which");
  keys.numbers("betas", options.betas, at_least(0).below(1), "decays");
  keys.rate("rate", options.rate, "the rate");
  keys.integer_or_word("freeze", options.freeze, "auto", at_least(1), "when");
  keys.counts("rows", options.rows, "{name: rows}");
  keys.weights_or_word("weights", options.weights, options.weighting, {"none", "balanced"},
                       above(0), "{name: weight}");
  keys.texts("names", options.names, "the names");
  keys.fixed("amsgrad", false, "there is none");
  keys.fixed("stage", int64_t{0}, "state is whole");
  keys.fixed("max_norm", 0.0, "elsewhere");
  keys.off("amp", "use bf16");
  keys.refused("scale", "there is one scale");
  keys.without_effect("timers", "time is always taken");
  keys.accepted("comment", "for the reader");
  return options;
}

std::string errors_of(std::string_view text) {
  Keys keys = keys_of(text);
  read(keys);
  return message_of([&] { keys.check(); });
}

TEST(Keys, AbsentOrNullKeepsTheDefault) {
  // Unknown keys may be null, too: programs that write all options use null for unset ones.
  for (const char* text :
       {"{}", R"({"count": null, "rows": null, "freeze": null, "cuont": null})"}) {
    Keys keys = keys_of(text);
    const Options options = read(keys);
    keys.check();
    EXPECT_EQ(options.count, 3);
    EXPECT_FALSE(options.size.has_value());
    EXPECT_EQ(options.colour, Colour::kGreen);
    EXPECT_EQ(options.freeze, 10);
    EXPECT_EQ(keys.resolved().dump(),
              R"({"count":3,"share":0.5,"on":true,"label":"x","colour":"green",)"
              R"("betas":[0.9,0.999],"rate":0.001,"freeze":10,"weights":"none",)"
              R"("amsgrad":false,"stage":0,"max_norm":0.0})");
  }
}

TEST(Keys, GivenValuesAreStoredAndResolved) {
  Keys keys = keys_of(R"({"count": 4.0, "size": 9, "share": 0, "factor": 2, "on": false,
      "label": "", "backend": "mpi", "colour": "red", "betas": [0, 0.5], "rate": [0.1, 0.1],
      "freeze": "auto", "rows": {"a": 0}, "weights": {"b": 0.5}, "names": ["d", "c"], "amsgrad": false, "stage": 0, "max_norm": 0,
      "amp": {"enabled": false}, "timers": 1, "comment": "c"})");
  const Options options = read(keys);
  keys.check();
  EXPECT_EQ(options.count, 4);
  EXPECT_EQ(options.size, 9);
  EXPECT_EQ(options.factor, 2);
  EXPECT_EQ(options.colour, Colour::kRed);
  EXPECT_EQ(options.betas[1], 0.5);
  EXPECT_EQ(options.rate, 0.1);
  EXPECT_FALSE(options.freeze.has_value());
  EXPECT_EQ(options.rows.at("a"), 0);
  EXPECT_EQ(options.weights.at("b"), 0.5);
  EXPECT_EQ(options.weighting, "");
  EXPECT_THAT(options.names, ElementsAre("d", "c"));
  EXPECT_THAT(keys.notices(), ElementsAre("timers: no effect, time is always taken"));
  const Json resolved = keys.resolved();
  EXPECT_EQ(
      resolved.dump(),
      R"({"count":4,"size":9,"share":0.0,"factor":2.0,"on":false,"label":"",)"
      R"("backend":"mpi","colour":"red","betas":[0.0,0.5],"rate":[0.1,0.1],"freeze":"auto",)"
      R"("rows":{"a":0},"weights":{"b":0.5},"names":["d","c"],"amsgrad":false,"stage":0,"max_norm":0.0,"amp":{"enabled":false}})");
  Keys again(resolved, "resolved");
  read(again);
  again.check();
  EXPECT_EQ(again.resolved().dump(), resolved.dump());
}

struct Wrong {
  const char* text;
  const char* message;  // after "recipe.json: key "
};

TEST(Keys, AWrongValueIsNamedWithWhatItMayBe) {
  const Wrong cases[] = {
      {R"({"count": "many"})", "`count` is \"many\"; it must be a whole number of at least 1"},
      {R"({"count": 1.5})", "`count` is 1.5; it must be a whole number of at least 1"},
      {R"({"count": 0})", "`count` is 0; it must be a whole number of at least 1"},
      {R"({"count": 18446744073709551615})",
       "`count` is 18446744073709551615; it must be a whole number of at least 1"},
      {R"({"size": 10})", "`size` is 10; it must be a whole number from 1 to 9"},
      {R"({"share": 1})", "`share` is 1; it must be a number of at least 0 and below 1"},
      {R"({"factor": 0})", "`factor` is 0; it must be a number above 0"},
      {R"({"on": 1})", "`on` is 1; it must be true or false"},
      {R"({"label": 1})", "`label` is 1; it must be a string"},
      {R"({"colour": "geren"})",
       "`colour` is \"geren\"; it must be one of red, green (did you mean \"green\"?)"},
      {R"({"betas": [1, 0.5]})",
       "`betas` is [1,0.5]; it must be a list of 2 numbers of at least 0 and below 1"},
      {R"({"betas": [0.5]})",
       "`betas` is [0.5]; it must be a list of 2 numbers of at least 0 and below 1"},
      {R"({"rate": [1, 2]})",
       "`rate` is [1,2]; it must be a number of at least 0, or a list of equal numbers: all "
       "parameters share one rate"},
      {R"({"freeze": "atuo"})",
       "`freeze` is \"atuo\"; it must be a whole number of at least 1, or \"auto\" (did you mean "
       "\"auto\"?)"},
      {R"({"rows": {"a": -1}})",
       "`rows` is {\"a\":-1}; it must be an object with integer values of at least 0: {name: "
       "rows}"},
      {R"({"weights": "balancd"})",
       "`weights` is \"balancd\"; it must be an object with numeric values above 0, or \"none\", "
       "\"balanced\" (did you mean \"balanced\"?)"},
      {R"({"weights": {"a": 0}})",
       "`weights` is {\"a\":0}; it must be an object with numeric values above 0, or \"none\", "
       "\"balanced\""},
      {R"({"names": []})", "`names` is []; it must be a list of strings"},
      {R"({"names": ["a", 1]})", "`names` is [\"a\",1]; it must be a list of strings"},
      {R"({"amsgrad": true})", "`amsgrad` is true; it must be false: there is none"},
      {R"({"stage": 2})", "`stage` is 2; it must be 0: state is whole"},
      {R"({"max_norm": 1})", "`max_norm` is 1; it must be 0: elsewhere"},
      {R"({"amp": {"enabled": true}})",
       "`amp` is {\"enabled\":true}; it must be a section with \"enabled\": false: use bf16"},
      {R"({"scale": "rms"})", "`scale` is not supported: there is one scale; remove it"},
      {R"({"cuont": 1})", "`cuont` is not known; did you mean \"count\"?"},
  };
  for (const Wrong& wrong : cases) {
    EXPECT_EQ(errors_of(wrong.text), std::string("recipe.json: key ") + wrong.message);
  }
}

TEST(Keys, EverythingWrongIsNamedAtOnce) {
  EXPECT_EQ(errors_of(R"({"colr": "red", "count": 0, "on": "yes"})"),
            "recipe.json: key `count` is 0; it must be a whole number of at least 1\n"
            "recipe.json: key `on` is \"yes\"; it must be true or false\n"
            "recipe.json: key `colr` is not known; did you mean \"colour\"?");
}

// The value of such a key is the default, which nobody wrote.
TEST(Keys, ARuleSaysNothingOfAValueThatWasRefused) {
  Keys keys(parse_json(R"({"count": 0, "most": 2})", "recipe.json"), "recipe.json");
  int64_t count = 128, most = 64;
  keys.integer("count", count, at_least(1), "how many");
  keys.integer("most", most, at_least(1), "at most");
  keys.require(count <= most, "count", "is {}, and at most {} are possible", count, most);
  EXPECT_THAT(keys.errors(), ElementsAre(HasSubstr("`count` is 0; it must be")));
}

TEST(Keys, ALongValueIsCutShort) {
  const std::string error = errors_of("{\"count\": \"" + std::string(500, 'a') + "\"}");
  EXPECT_LT(error.size(), 200u);
  EXPECT_THAT(error, HasSubstr("aaa...; it must be"));
}

// Two sections, a rule between them, and a section of kinds.
void read_sections(Keys& keys) {
  int64_t first = 1, second = 2;
  Keys run = keys.section("run", "the run");
  run.integer("first", first, at_least(0), "first");
  run.integer("second", second, at_least(0), "second");
  run.require(first < second, "first", "is {}, not below second, which is {}", first, second);
  run.need("first", "say which");
  keys.section("kind", "a choice")
      .kinds({.names = {"Linear", "Square"}, .elsewhere = {"Cubic"}, .instead = "take Square"},
             "which", [](size_t kind, Keys& params) {
               double slope = 1, power = 2;
               if (kind == 0) params.number("slope", slope, {}, "slope");
               if (kind == 1) params.number("power", power, above(1), "power");
             });
}

std::vector<std::string> section_errors(std::string_view text) {
  Keys keys = keys_of(text);
  read_sections(keys);
  return keys.errors();
}

TEST(Keys, RulesAndSectionsNameTheirPath) {
  EXPECT_THAT(section_errors(R"({"run": {"first": 1}})"), IsEmpty());
  EXPECT_THAT(section_errors(R"({"run": {"first": 2}})"),
              ElementsAre("recipe.json: key `run.first` is 2, not below second, which is 2"));
  EXPECT_THAT(section_errors("{}"),
              ElementsAre("recipe.json: key `run.first` is missing: say which"));
  EXPECT_THAT(section_errors(R"({"run": 3})"),
              ElementsAre("recipe.json: key `run` is 3; it must be an object in braces",
                          "recipe.json: key `run.first` is missing: say which"));
  EXPECT_THAT(section_errors(R"({"run": {"first": 1, "secnd": 1}})"),
              ElementsAre("recipe.json: key `run.secnd` is not known; did you mean \"second\"?"));
}

TEST(Keys, AKindHasKeysOfItsOwn) {
  const auto errors = [](const std::string& kind) {
    return section_errors(R"({"run": {"first": 1}, "kind": )" + kind + "}");
  };
  EXPECT_THAT(errors(R"({"type": "Square", "params": {"power": 3}})"), IsEmpty());
  EXPECT_THAT(errors(R"({"type": "Square", "params": {"slope": 3}})"),
              ElementsAre("recipe.json: key `kind.params.slope` is not known; known here: power"));
  EXPECT_THAT(errors(R"({"type": "Squaer", "params": {"slope": 3}})"),
              ElementsAre("recipe.json: key `kind.type` is \"Squaer\"; it must be one of Linear, "
                          "Square (did you mean \"Square\"?)"));
  EXPECT_THAT(
      errors(R"({"type": "Cubic"})"),
      ElementsAre("recipe.json: key `kind.type` is \"Cubic\", which onebit does not support yet; "
                  "take Square"));
  EXPECT_THAT(errors(R"({"params": {}})"),
              ElementsAre("recipe.json: key `kind.params` is not known; known here: type"));
}

TEST(Keys, AListingHasEveryKindAndNoError) {
  Keys keys = Keys::listing();
  read_sections(keys);
  EXPECT_THAT(keys.errors(), IsEmpty());
  const KeyRow& kind = keys.rows().rows.back();
  std::vector<std::string> kinds;
  for (const KeyRow& row : kind.rows) kinds.push_back(row.kind);
  EXPECT_THAT(kinds, ElementsAre("", "Linear", "Square"));
  EXPECT_EQ(kind.rows.back().rows.front().fallback, 2.0);
  EXPECT_TRUE(keys.rows().rows.front().rows.front().required);
}

TEST(Keys, ASectionWithoutKeysStaysAsItWasGiven) {
  Keys keys = keys_of(R"({"run": {"first": 1}, "kind": {}})");
  read_sections(keys);
  EXPECT_EQ(keys.resolved().dump(), R"({"run":{"first":1,"second":2},"kind":{}})");
}

TEST(Keys, AKeyThatIsLeftOutIsNotResolved) {
  Keys keys = keys_of("{}");
  double share = 0.5;
  keys.number("share", share, {}, "which part");
  keys.leave_out("share");
  EXPECT_EQ(keys.resolved(), Json::object());
}

TEST(Keys, AnAttemptRunsOnlyWhereNothingIsWrong) {
  Keys keys = keys_of(R"({"count": 0})");
  keys.attempt([] { fail("first"); });
  keys.attempt([] { fail("second"); });
  EXPECT_EQ(message_of([&] { keys.check_part(); }), "first");
}

TEST(Keys, RequireAnObject) {
  EXPECT_THAT(message_of([] { keys_of("[]"); }),
              HasSubstr("must be an object in braces, got array"));
}

TEST(Keys, ABooleanMayAlsoBeAWord) {
  const auto read_from = [](const char* text) {
    std::optional<bool> value = false;
    Keys keys = keys_of(text);
    keys.boolean_or_word("bf16", value, "auto", "whether");
    keys.check();
    return value;
  };
  EXPECT_EQ(read_from("{}"), false);
  EXPECT_EQ(read_from(R"({"bf16": true})"), true);
  EXPECT_EQ(read_from(R"({"bf16": "auto"})"), std::nullopt);
  for (const char* wrong : {R"({"bf16": "atuo"})", R"({"bf16": 1})"}) {
    EXPECT_NE(message_of([&] { read_from(wrong); }).find("true, false or \"auto\""),
              std::string::npos);
  }
}

}  // namespace
}  // namespace onebit
