#include "onebit/training/training/run_profile.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "onebit/ground/base/json.h"
#include "tests/base/temporary_folder.h"

namespace onebit::training {
namespace {

TEST(ProfileTrace, IsJsonThatNamesRanksThreadsAndBuckets) {
  Profile profile;
  Context context = Context::cpu(1);
  context.set_profile_track(&profile.track("main"));
  profile.start({.first_counted_step = 1, .first_traced_step = 1, .traced_steps = 1});
  {
    const StepSpan step(context, 1);
    const PhaseSpan phase(context, "encoder forward");
    const OperationSpan product(context, "matrix_product", [] {
      return Work{.flops = 1e6, .bytes = 1e3, .use = "forward", .in = 2, .out = 3};
    });
    const PhaseSpan bucket(&profile.track("exchange"), "exchange pack", 4);
  }
  const TemporaryFolder folder;
  const Path path = folder / trace_name(2);
  EXPECT_EQ(path.filename(), "trace_rank2.json");
  EXPECT_EQ(trace_name(0), "trace.json");
  write_trace(path, profile, 2);

  std::map<std::string, Json> spans;
  std::set<std::string> names;
  const Json trace = read_json(path);
  for (const Json& event : trace.at("traceEvents")) {
    EXPECT_EQ(event.at("pid"), 2);
    if (event.at("ph") == "M") {
      names.insert(event.at("args").at("name").get<std::string>());
    } else {
      EXPECT_EQ(event.at("ph"), "X");
      spans[event.at("name").get<std::string>()] = event;
    }
  }
  EXPECT_EQ(names, (std::set<std::string>{"rank 2", "main", "exchange"}));
  ASSERT_EQ(spans.size(), 4u);
  const Json &product = spans.at("matrix_product"), &phase = spans.at("encoder forward");
  EXPECT_EQ(product.at("cat"), "encoder forward");
  EXPECT_EQ(product.at("args").at("use"), "forward");
  EXPECT_EQ(product.at("args").at("in"), 2);
  EXPECT_GT(product.at("args").at("GFLOP/s"), 0);
  EXPECT_GE(product.at("ts").get<double>(), phase.at("ts").get<double>());
  EXPECT_LE(product.at("dur").get<double>(), phase.at("dur").get<double>());
  EXPECT_EQ(spans.at("exchange pack").at("args").at("bucket"), 4);
  EXPECT_EQ(spans.at("exchange pack").at("tid"), 1);
  EXPECT_EQ(spans.at("step").at("tid"), 0);
}

}  // namespace
}  // namespace onebit::training
