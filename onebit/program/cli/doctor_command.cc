// onebit doctor: what this machine and this program offer for training, how fast they are, and
// possible problems. Or the same for many hosts, in a table.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <memory>

#include "onebit/exchange/transport/mpi_communicator.h"
#include "onebit/exchange/transport/nccl_communicator.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/machine.h"
#include "onebit/ground/base/parallel_for.h"
#include "onebit/ground/base/wording.h"
#include "onebit/ground/metrics/human.h"
#include "onebit/ground/metrics/text_table.h"
#include "onebit/math/device/libraries.h"
#include "onebit/math/device/memory.h"
#include "onebit/program/cli/collect_host_facts.h"
#include "onebit/program/cli/command_list.h"
#include "onebit/program/cli/host_options.h"
#include "onebit/program/cluster/agent.h"
#include "onebit/program/cluster/host_check.h"
#include "onebit/program/cluster/host_command_line.h"
#include "onebit/program/cluster/link_report.h"
#include "onebit/program/cluster/mpi_ports.h"
#include "onebit/program/cluster/starter_choice.h"
#include "onebit/training/commands/device_option.h"
#include "onebit/training/commands/output_files.h"
#include "onebit/training/commands/usage.h"
#include "onebit/training/costs/machine_check.h"
#include "onebit/training/costs/machine_costs.h"

namespace onebit::cli {
namespace {

using metrics::human_bytes;

constexpr double kHostSeconds = 30;  // for a host's answer

struct Arguments {
  int threads = 0;
  bool quick = false, json = false;
  std::string output;
  HostOptions hosts;
  cluster::HostQuestion question;
};

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string bytes(int64_t count) {
  return human_bytes(static_cast<double>(count));
}

void add_machine(metrics::TextTable& table, const Machine& machine) {
  table.add_title("Machine");
  table.add_row({"processor", machine.processor.empty() ? "unknown" : machine.processor});
  table.add_row({"processors", fmt::format("{} on {}, {}; this process may use {}",
                                           machine.processors, counted(machine.cores, "core"),
                                           counted(machine.numa_nodes, "memory node"),
                                           machine.allowed_processors)});
  table.add_row(
      {"memory", fmt::format("{}, {} free; {} free in /dev/shm", bytes(machine.memory_bytes),
                             bytes(machine.available_bytes), bytes(machine.shared_memory_bytes))});
  table.add_row({"load", fmt::format("{:.2f} in the last minute", machine.load)});
}

void add_program(metrics::TextTable& table, const costs::ProgramFacts& program) {
  table.add_title("Program");
  table.add_row({"onebit", ONEBIT_VERSION});
  table.add_row({"oneDNN", fmt::format("{}, computes with {}; bf16 {}", onednn_version(),
                                       onednn_instruction_set(),
                                       program.native_bf16 ? "native" : "not native (no faster)")});
  table.add_row({"MPI", program.mpi_problem.empty() ? transport::mpi_version() : "cannot be used"});
  const std::optional<Path> mpirun = path_of_program("mpirun");
  table.add_row({"mpirun", mpirun ? mpirun->string() : "not in PATH"});
  const int cuda = cuda_version();
  table.add_row({"CUDA", cuda == 0 ? "not built in"
                                   : fmt::format("{}.{}, {}", cuda / 1000, cuda % 1000 / 10,
                                                 counted(program.cuda_devices, "device"))});
  for (int index = 0; index < program.cuda_devices; ++index) {
    table.add_row({fmt::format("device {}", index), memory::describe_cuda_device(index)});
  }
  table.add_row({"NCCL", transport::describe_nccl()});
  table.add_row(
      {"threads per rank", fmt::format("{} for one rank on this machine", program.threads)});
}

// What predictions with --compute int8 gain.
std::string int8_speed(const costs::ProgramFacts& program) {
  if (program.int8 <= 0) return "not possible: " + program.int8_problem;
  std::string text = fmt::format("{:.0f} GOP/s, {:.1f} times f32", program.int8 * 1e-9,
                                 program.int8 / program.f32);
  if (program.bf16 > 0) text += fmt::format(", {:.1f} times bf16", program.int8 / program.bf16);
  return text + " (predictions with --compute int8)";
}

void add_speed(metrics::TextTable& table, const costs::ProgramFacts& program) {
  table.add_title("Measured with these threads");
  table.add_row({"products, f32", fmt::format("{:.0f} GFLOP/s", program.f32 * 1e-9)});
  table.add_row({"products, bf16",
                 program.bf16 > 0 ? fmt::format("{:.0f} GFLOP/s", program.bf16 * 1e-9) : "as f32"});
  table.add_row({"products, int8", int8_speed(program)});
  table.add_row({"memory, copied", fmt::format("{:.1f} GB/s", program.memory * 1e-9)});
}

void print_problems(const char* title, const cluster::Problems& problems) {
  if (!problems.empty()) fmt::print("\n{}\n{}", title, cluster::table_of(problems));
}

// Checks which hosts reach each other at the ports of onebit's MPI or TCP, and how fast their links
// are.
void look_at_links(const Arguments& given, const ChosenHosts& chosen,
                   const std::vector<std::string>& hosts, cluster::CheckFindings& found) {
  using cluster::Starter;
  const cluster::MpiVersion mpi = cluster::version_of_library(transport::mpi_version());
  const bool is_open_mpi = mpi.kind == cluster::MpiVersion::Kind::kOpenMpi;
  const Starter starter = !transport::mpi_is_there() ? Starter::kTcp
                          : is_open_mpi              ? Starter::kOpenMpi
                                                     : Starter::kMpich;
  const auto ranges = cluster::mpi_ports(
      starter, mpi.major, [](const std::string& name) { return environment(name.c_str()); });
  const cluster::LinkFindings links =
      cluster::check_links({.agent = agent_of(given.hosts, chosen.in_slurm),
                            .hosts = hosts,
                            .program = program_of(given.hosts),
                            .folder = std::filesystem::current_path().string(),
                            .interface = given.question.interface,
                            .ranges = ranges,
                            .measures = !given.quick},
                           [] { return false; });
  const auto add = [](cluster::Problems& to, const cluster::Problems& more) {
    to.insert(to.end(), more.begin(), more.end());
  };
  add(found.wrong, cluster::problems_of(links, ranges));
  add(found.notes, cluster::slow_links(links.measured));
  if (links.measured.empty()) return;
  fmt::print("\n{}", cluster::link_table(links.measured));
  fmt::print("for `onebit plan`, the slowest: {}\n", cluster::plan_words(links.measured));
}

// Reports every host and the differences between hosts. Fails if the hosts cannot be used together.
int run_on_hosts(const Arguments& given) {
  const ChosenHosts chosen = choose_hosts(given.hosts);
  cluster::raise_open_files_for(static_cast<int64_t>(chosen.hosts.size()));
  const auto checked = cluster::check_hosts(
      agent_of(given.hosts, chosen.in_slurm), names_of(chosen.hosts),
      cluster::facts_words(program_of(given.hosts), given.question),
      std::filesystem::current_path().string(), kHostSeconds, [] { return false; });
  cluster::CheckFindings found = cluster::compare_hosts(checked, chosen.hosts, {});
  fmt::print("{}", cluster::host_table(checked));
  look_at_links(given, chosen, cluster::alike_hosts(checked), found);
  print_problems("Problems:", found.wrong);
  print_problems("Notes:", found.notes);
  if (found.wrong.empty() && found.notes.empty()) fmt::print("\nNo problems found.\n");
  return found.wrong.empty() ? commands::kSuccess : commands::kFailure;
}

void check(const Arguments& given) {
  if (given.json && given.hosts.any()) {
    throw commands::UsageError(
        "--json reports only this machine: leave out hosts, or run it on each of them");
  }
  if (given.output.empty()) return;
  if (given.quick || given.json || given.hosts.any()) {
    throw commands::UsageError(
        "--output measures only this machine: leave out --quick, --json and hosts");
  }
}

int run(const Arguments& given) {
  check(given);
  if (given.hosts.any()) return run_on_hosts(given);
  if (given.json) {
    fmt::print("{}\n", json_text(to_json(find_host_facts(given.question)), 2));
    return commands::kSuccess;
  }
  commands::require_writable_file(given.output);
  const Machine machine = read_machine();
  const int threads = given.threads > 0 ? given.threads : available_threads();
  Context context = Context::cpu(threads);
  costs::ProgramFacts program = costs::program_facts(context);
  if (!given.quick) costs::measure_speed(context, program);
  metrics::TextTable table;
  add_machine(table, machine);
  add_program(table, program);
  if (!given.quick) add_speed(table, program);
  fmt::print("{}", table.text());
  const std::vector<std::string> found = costs::concerns(machine, program);
  fmt::print("\n{}\n", found.empty() ? "No problems found." : "Possible problems:");
  for (const std::string& concern : found) fmt::print("- {}\n", concern);
  if (given.output.empty()) return commands::kSuccess;
  costs::write_machine_costs(given.output, costs::measure_machine_costs(context));
  fmt::print("\n{}: the measured cost of the parts of a step, for `onebit plan --measured`\n",
             given.output);
  return commands::kSuccess;
}

}  // namespace

void add_doctor(commands::Command program, commands::Action& chosen) {
  auto given = std::make_shared<Arguments>();
  const commands::Command command =
      program.add_subcommand(cluster::kDoctorCommand,
                             "Describe this machine and this program for training, and possible "
                             "problems. With --hostfile or --hosts, compare several hosts");
  command
      .add_option("--threads", given->threads,
                  "Threads to measure with, where 0 is all processors this process may use")
      .check(commands::whole_between(0, commands::kMaxThreads))
      .capture_default_str();
  command.add_flag("--quick", given->quick,
                   "Skip the measurements (they take 2.5 seconds, with hosts one second per host)");
  command.add_flag(cluster::kJsonOption, given->json,
                   "Print everything that needs no measurement as JSON, for programs");
  command.add_option("--output", given->output,
                     "Also measure the parts of a training step, which takes some seconds, and "
                     "write them as JSON for `onebit plan --measured`");
  command
      .add_option(cluster::kInputOption, given->question.inputs,
                  "With --json or hosts: data, recipe or model that must exist (repeatable)")
      .allow_extra_args(false);
  command
      .add_option(cluster::kStoreOption, given->question.stores,
                  "The same for a store of pre-training data (repeatable)")
      .allow_extra_args(false);
  command.add_option(cluster::kRunOption, given->question.output,
                     "With --json or hosts: the folder of a run. A file is made and removed there, "
                     "or in the nearest folder above that exists");
  command.add_option(cluster::kInterfaceOption, given->question.interface,
                     "With --json or hosts: the network between them, as `onebit launch` takes it");
  add_host_options(command, given->hosts, "this machine");
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::cli
