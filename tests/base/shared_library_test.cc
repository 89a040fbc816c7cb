#include "onebit/ground/base/shared_library.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <signal.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/base/temporary_folder.h"

namespace onebit {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A library that every machine has, without its folder.
constexpr const char* kMath = "/nowhere/libm.so.6";

double twice_at_zero(SharedLibrary& library, const char* name) {
  return 2 * call_of<static_cast<double (*)(double)>(std::cos)>(library, name, -1.0, 0.0);
}

TEST(SharedLibrary, CallsItsFunctions) {
  SharedLibrary library(kMath, "install it");
  EXPECT_EQ(twice_at_zero(library, "cos"), 2);
  EXPECT_STREQ(library.problem(), "");
}

TEST(SharedLibrary, LoadingItChangesNothingAboutSignals) {
  const auto before = ::signal(SIGHUP, SIG_IGN);
  const SharedLibrary library(ONEBIT_HANGUP_LIBRARY, "build it");
  EXPECT_EQ(::signal(SIGHUP, before), SIG_IGN);
  void* const loaded = dlopen(ONEBIT_HANGUP_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(loaded, nullptr);
  dlclose(loaded);
}

TEST(SharedLibrary, IsFoundWhereItWasWhenBuilt) {
  Dl_info math;
  ASSERT_NE(dladdr(dlsym(RTLD_DEFAULT, "cos"), &math), 0);
  const TemporaryFolder folder;
  const std::filesystem::path copy = folder.path() / "libonly_here.so.6";
  std::filesystem::copy_file(math.dli_fname, copy);
  SharedLibrary library(copy.c_str(), "install it");
  EXPECT_NE(library.find("cos"), nullptr);
  EXPECT_STREQ(library.problem(), "");
}

TEST(SharedLibrary, MissingLibraryIsOneLineWithTheRemedy) {
  SharedLibrary library("/nowhere/libnone.so.7", "install it");
  EXPECT_EQ(library.find("cos"), nullptr);
  EXPECT_THAT(library.problem(), AllOf(StartsWith("libnone.so.7: "), HasSubstr("; install it")));
  EXPECT_EQ(std::string(library.problem()).find('\n'), std::string::npos);
}

TEST(SharedLibrary, DamagedLibraryIsNotReportedAsMissing) {
  const TemporaryFolder folder;
  const std::filesystem::path damaged = folder.path() / "libdamaged.so.6";
  std::ofstream(damaged) << "no library";
  SharedLibrary library(damaged.c_str(), "install it");
  EXPECT_EQ(library.find("cos"), nullptr);
  EXPECT_THAT(library.problem(), AllOf(StartsWith(damaged.string()), HasSubstr("; install it")));
}

TEST(SharedLibrary, FunctionOfAnotherVersionIsNamed) {
  SharedLibrary library(kMath, "install it");
  EXPECT_EQ(library.find("cosine"), nullptr);
  EXPECT_STREQ(library.problem(),
               "libm.so.6 has no cosine: it is of another version than the one built with");
}

}  // namespace
}  // namespace onebit
