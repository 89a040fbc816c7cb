#include "onebit/program/launch/exported_variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onebit::launch {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(IsSecret, KnowsTheUsualNames) {
  for (const char* name : {"GIT_TOKEN", "DB_PWD", "SSH_PASSPHRASE", "MAIL_PASS", "HTTP_AUTH",
                           "authorization", "SESSION_COOKIE"}) {
    EXPECT_TRUE(is_secret(name)) << name;
  }
  for (const char* name : {"PWD", "OLDPWD", "PATH", "OMP_NUM_THREADS", "UCX_NET_DEVICES"}) {
    EXPECT_FALSE(is_secret(name)) << name;
  }
}

TEST(ExportedVariables, AreThoseOfKnownPrefixes) {
  cluster::Problems problems;
  EXPECT_THAT(exported_names({"OMP_NUM_THREADS=2", "HOME=/x", "NCCL_DEBUG=INFO", "PATH=/bin",
                              "ONEDNN_VERBOSE=1", "LD_LIBRARY_PATH=/l"},
                             {}, problems),
              ElementsAre("LD_LIBRARY_PATH", "NCCL_DEBUG", "OMP_NUM_THREADS", "ONEDNN_VERBOSE"));
  EXPECT_THAT(problems, IsEmpty());
}

TEST(ExportedVariables, AreNeverSecrets) {
  cluster::Problems problems;
  EXPECT_THAT(exported_names({"ONEBIT_API_TOKEN=x", "NCCL_secret=y", "CUDA_DEVICE_KEY=1", "A=1"},
                             {"A", "AWS_SECRET_ACCESS_KEY", "B", "", "1A", "A B"}, problems),
              ElementsAre("A"));
  ASSERT_EQ(problems.size(), 5u);
  EXPECT_THAT(problems[4].what, testing::HasSubstr("\"A B\" is not a valid variable name"));
  EXPECT_THAT(problems[0].what, testing::HasSubstr("AWS_SECRET_ACCESS_KEY looks like a secret"));
  EXPECT_THAT(problems[1].what, testing::HasSubstr("B is not set"));
}

TEST(ExportedVariables, StandInAFile) {
  cluster::Problems problems;
  EXPECT_THAT(
      parse_variables("# mine\n\nA=1\nexport B=\"two words\"\n  C='x=y' \r\nD=\n", "env", problems),
      ElementsAre("A=1", "B=two words", "C=x=y", "D="));
  EXPECT_THAT(problems, IsEmpty());
  parse_variables("A=1\nnothing\n1B=2\n=3\n", "env", problems);
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_EQ(problems[0].place, "env:2");
  EXPECT_EQ(problems[2].place, "env:4");
}

}  // namespace
}  // namespace onebit::launch
