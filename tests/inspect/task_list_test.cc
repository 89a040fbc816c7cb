#include "onebit/program/inspect/task_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "onebit/ground/base/json.h"

namespace onebit::inspect {
namespace {

using ::testing::ElementsAreArray;

TEST(TaskList, HasEveryNameThatARecipeMayHave) {
  std::vector<std::string> names;
  for (const inspect::TaskKind& task : tasks()) names.emplace_back(task.name);
  EXPECT_THAT(names, ElementsAreArray(training::kTaskNames));
  for (const std::string& name : names) {
    EXPECT_EQ(task_of({.values = {{"task", name}}, .place = "recipe.json"}).name, name);
  }
}

}  // namespace
}  // namespace onebit::inspect
