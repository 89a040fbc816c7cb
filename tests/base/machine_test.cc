#include "onebit/ground/base/machine.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/base/temporary_folder.h"

namespace onebit {
namespace {

void write(const Path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

// Two sockets of two cores with two hardware threads each, in a container.
class MachineTest : public testing::Test {
 protected:
  void SetUp() override {
    write(root() / "proc/cpuinfo", "processor\t: 0\nmodel name\t: Some Processor 9000\n");
    write(root() / "proc/loadavg", "3.25 2.00 1.00 1/200 4242\n");
    write(root() / "proc/meminfo", "MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable:  400 kB\n");
    write(root() / "proc/self/cgroup", "0::/jobs/one\n");
    const Path processors = root() / "sys/devices/system/cpu";
    write(processors / "online", "0-7\n");
    for (int member = 0; member < 8; ++member) {
      write(processors / ("cpu" + std::to_string(member)) / "topology/thread_siblings_list",
            std::to_string(member % 4) + "," + std::to_string(member % 4 + 4) + "\n");
    }
    write(processors / "cpu0/cpufreq/scaling_governor", "powersave\n");
    write(root() / "sys/devices/system/node/online", "0-1\n");
    write(root() / "sys/devices/system/node/node0/cpulist", "0-1,4-5\n");
    write(root() / "sys/devices/system/node/node1/cpulist", "2-3,6-7\n");
  }
  Path root() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

TEST_F(MachineTest, reads_processors_and_memory) {
  const Machine machine = read_machine(root());
  EXPECT_EQ(machine.processor, "Some Processor 9000");
  EXPECT_EQ(machine.processors, 8);
  EXPECT_EQ(machine.cores, 4);
  EXPECT_EQ(machine.numa_nodes, 2);
  EXPECT_EQ(machine.governor, "powersave");
  EXPECT_EQ(machine.load, 3.25);
  EXPECT_EQ(machine.memory_bytes, 1000 * 1024);
  EXPECT_EQ(machine.available_bytes, 400 * 1024);
  EXPECT_EQ(machine.quota_processors, 0);
  EXPECT_EQ(machine.limit_bytes, 0);
  EXPECT_FALSE(machine.has_nvidia_device);
}

TEST_F(MachineTest, takes_the_tightest_limit_of_all_control_groups_above) {
  write(root() / "sys/fs/cgroup/jobs/cpu.max", "250000 100000\n");
  write(root() / "sys/fs/cgroup/jobs/memory.max", "max\n");
  write(root() / "sys/fs/cgroup/jobs/one/cpu.max", "400000 100000\n");
  write(root() / "sys/fs/cgroup/jobs/one/memory.max", "123456\n");
  const Machine machine = read_machine(root());
  EXPECT_EQ(machine.quota_processors, 2.5);
  EXPECT_EQ(machine.limit_bytes, 123456);
}

TEST(Machine, leaves_what_cannot_be_read_at_its_default) {
  const TemporaryFolder empty;
  const Machine machine = read_machine(empty.path());
  EXPECT_EQ(machine.processor, "");
  EXPECT_EQ(machine.processors, 0);
  EXPECT_GE(machine.allowed_processors, 1);  // the mask is this process's
}

TEST(Machine, peak_memory_grows_with_what_is_touched) {
  const int64_t before = peak_resident_bytes();
  EXPECT_GT(before, int64_t{1} << 20);
  const std::vector<char> touched(static_cast<size_t>(before) + (size_t{32} << 20), 1);
  EXPECT_GT(peak_resident_bytes(), before + (int64_t{16} << 20));
  EXPECT_EQ(touched.back(), 1);
}

TEST(Machine, this_one_can_be_read) {
  const Machine machine = read_machine();
  EXPECT_GE(machine.processors, machine.allowed_processors);
  EXPECT_GE(machine.processors, machine.cores);
  EXPECT_GT(machine.memory_bytes, machine.available_bytes);
}

}  // namespace
}  // namespace onebit
