#include "onebit/ground/base/lost_maps.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "onebit/ground/base/file.h"
#include "tests/base/temporary_folder.h"

namespace onebit {
namespace {

constexpr size_t kBytes = 100'000;

// Shortens a file that is mapped, and reads it.
void read_lost_byte(const Path& path) {
  explain_lost_maps();
  write_file_atomically(path, std::string(kBytes, 'x'));
  const MappedFile other = [&] {
    const Path beside = path.string() + ".other";
    write_file_atomically(beside, "y");
    return MappedFile(beside);
  }();
  const MappedFile file(path);
  std::filesystem::resize_file(path, 10);
  const volatile std::byte* bytes = file.bytes().data();
  [[maybe_unused]] const std::byte lost = bytes[kBytes - 1];
}

TEST(LostMaps, AFileThatBecameShorterIsNamed) {
  TemporaryFolder folder;
  const Path path = folder / "tokens\x1b.bin";
  EXPECT_EXIT(read_lost_byte(path), ::testing::ExitedWithCode(1),
              "^error: .*/tokens.x1b.bin: became shorter while it was used, or its disk cannot be "
              "read[^\n]*\n$");
}

// A map that is not of a file of ours.
void read_foreign_map(const Path& path) {
  explain_lost_maps();
  const MappedFile file = [&] {
    write_file_atomically(path, std::string(kBytes, 'x'));
    return MappedFile(path);
  }();
  forget_map(file.bytes().data());
  std::filesystem::resize_file(path, 10);
  const volatile std::byte* bytes = file.bytes().data();
  [[maybe_unused]] const std::byte lost = bytes[kBytes - 1];
}

TEST(LostMaps, OtherMapsEndTheProcessAsBefore) {
  TemporaryFolder folder;
  EXPECT_EXIT(read_foreign_map(folder / "a"), ::testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace onebit
