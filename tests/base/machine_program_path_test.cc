#include "onebit/ground/base/machine.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/base/temporary_folder.h"

namespace onebit {
namespace {

class ProgramPath : public ::testing::Test {
 protected:
  ProgramPath() : before_(std::getenv("PATH")) {}
  ~ProgramPath() override { ::setenv("PATH", before_.c_str(), 1); }

  // A file of this name, in a folder of this name.
  Path add(const std::string& folder, const std::string& name, bool executable) {
    const Path path = temporary_.path() / folder / name;
    std::filesystem::create_directories(path.parent_path());
    write_file_atomically(path, "#!/bin/sh\n");
    if (executable) std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }
  void search(const std::string& folders) { ::setenv("PATH", folders.c_str(), 1); }
  std::string folder(const std::string& name) { return (temporary_.path() / name).string(); }

 private:
  std::string before_;
  TemporaryFolder temporary_;
};

TEST_F(ProgramPath, IsTheFirstThatMayBeExecuted) {
  add("text", "mpirun", false);
  std::filesystem::create_directories(folder("folder") + "/mpirun");
  const Path first = add("first", "mpirun", true);
  add("second", "mpirun", true);
  search(folder("absent") + ":" + folder("text") + ":" + folder("folder") + ":" + folder("first") +
         ":" + folder("second"));
  EXPECT_EQ(path_of_program("mpirun"), first);
  EXPECT_EQ(path_of_program("mpiexec"), std::nullopt);
}

TEST_F(ProgramPath, IsNoneWithoutPath) {
  ::unsetenv("PATH");
  EXPECT_EQ(path_of_program("sh"), std::nullopt);
}

}  // namespace
}  // namespace onebit
