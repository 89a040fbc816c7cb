#!/usr/bin/env python3
"""`onebit launch` over several hosts that are network namespaces, and that disappear and return.

Usage: launcher_network_test.py ONEBIT. Exits with 77 if namespaces are not allowed.
"""
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import launched_hosts  # noqa: E402
from launched_hosts import Hosts, HostsTest, Link, network_lab  # noqa: E402
import fault_injection  # noqa: E402  (beside network_lab)
from launched_run import LaunchedRun  # noqa: E402

DOCUMENT = (launched_hosts.ROOT / "docs/cluster.md").read_text(encoding="utf-8")


class Launching(HostsTest):
    def test_hosts_of_a_file(self):
        with Hosts(5) as hosts:
            (self.folder / "hosts").write_text(
                "# five\n" + "".join(f"{name} slots=2\n" for name in hosts.names))
            run = self.launch(hosts, "file", "--hostfile", self.folder / "hosts", "--exclude",
                              f"{hosts.names[0]}:1@{hosts.names[1]}", "--ranks-per-host", "1")
            self.assertEqual(run.wait(), 0, run.text())
            self.assertEqual(run.left_over(), [])
            logs = sorted(path.name for path in (run.folder / "logs/attempt-1").iterdir())
            for rank, host in enumerate((0, 2, 3, 4)):
                self.assertEqual(f"rank-{rank}.{hosts.names[host]}.log" in logs, rank == 0, logs)
                self.assertIn(f"rank {rank} on {hosts.names[host]}: status 0",
                              (run.folder / "logs/attempt-1/launcher.log").read_text())
            self.assertEqual(len(run.steps()), 240)
        here = LaunchedRun(self.program, self.folder, "here",
                           ["--hosts", "localhost:4", "--bind", "none", "--threads", "1"])
        self.assertEqual(here.wait(), 0, here.text())
        self.assertEqual(run.model(), here.model())

    def test_a_rank_or_a_daemon_that_is_killed(self):
        with Hosts(2) as hosts:
            run = self.launch(hosts, "killed", "--hosts", ",".join(hosts.names))
            run.reach(25)
            os.kill(run.rank_pid(1), signal.SIGKILL)
            self.wait_for(run, "attempt 2:")
            self.assertIn(f"rank 1 on {hosts.names[1]} was killed by signal 9", run.text())
            run.reach(70)
            daemons = [pid for pid in network_lab.processes_in(hosts.namespace(1))
                       if pathlib.Path(f"/proc/{pid}/comm").read_text().strip() in ("orted", "prted")]
            self.assertTrue(daemons)
            os.kill(daemons[0], signal.SIGKILL)
            self.assertEqual(run.wait(), 0, run.text())
            self.assertIn("attempt 3:", run.text())
            self.assertEqual(len(run.steps()), 240)
            self.assertEqual(run.left_over(), [])

    def test_a_host_that_goes_for_good(self):
        with Hosts(3) as hosts:
            run = self.launch(hosts, "gone", "--hosts", ",".join(hosts.names), "--include",
                              "@".join(hosts.names[:2]), "--min-hosts", "1", "--hang-timeout",
                              "30s", "--host-timeout", "6s")
            run.reach(25)
            hosts.cut_power(1)
            self.assertEqual(run.wait(), 0, run.text())
            self.assertIn(f"{hosts.names[1]} is excluded: cannot be reached", run.text())
            self.assertIn("the run continues on 1 of 2 ranks: the batch size stays 16, as "
                          "8 per rank x 2 micro-steps x 1 rank", run.text())
            self.assertEqual(len(run.steps()), 240)
            self.assertEqual(run.left_over(), [])

    def test_a_batch_that_does_not_divide_is_dealt_unevenly(self):
        with Hosts(4) as hosts:
            run = self.launch(hosts, "uneven", "--hosts", ",".join(hosts.names), "--min-hosts",
                              "2", "--hang-timeout", "30s", "--host-timeout", "6s")
            run.reach(25)
            hosts.cut_power(2)
            self.assertEqual(run.wait(), 0, run.text())
            self.assertIn("attempt 2: 3 ranks on", run.text())
            self.assertIn("the run continues on 3 of 4 ranks: the batch size stays 16, as "
                          "6 + 5 + 5 over 3 ranks, in 2 micro-steps of at most 3 per rank (the "
                          "batch does not divide evenly among the ranks: run.uneven_batches)",
                          run.text())
            steps = run.steps()
            self.assertEqual([step["samples"] for step in steps],
                             [16 * step for step in range(1, 241)])
            self.assertLess(steps[-1]["loss"], steps[25]["loss"])
            self.assertEqual(run.left_over(), [])

    def test_a_host_that_comes_back_is_used_again(self):
        with Hosts(2) as hosts:
            run = self.launch(hosts, "back", "--hosts", ",".join(hosts.names), "--min-hosts", "1",
                              "--host-timeout", "6s", more=["--set", "run.steps=1000"])
            run.reach(25)
            hosts.cut_power(1)
            self.wait_for(run, "attempt 2: 1 rank on")
            hosts.plug_in(1)
            run.reach(run.step() + 25)
            os.kill(run.rank_pid(0), signal.SIGKILL)
            self.wait_for(run, "attempt 3: 2 ranks on")
            run.reach(run.step() + 5)
            run.process.send_signal(signal.SIGTERM)
            self.assertEqual(run.wait(), 75, run.text())
            self.assertIn("asked to end and has saved step", run.text())
            self.assertEqual((run.folder / "latest").read_text().strip(),
                             f"global_step{run.step()}")
            self.assertEqual(run.left_over(), [])

    def test_a_cable_that_is_pulled_and_plugged_in(self):
        with Hosts(2) as hosts:
            run = self.launch(hosts, "cable", "--hosts", ",".join(hosts.names), "--hang-timeout",
                              "6s")
            run.reach(25)
            hosts.pull_cable(1)
            self.wait_for(run, "attempt 1 failed")
            self.wait_for(run, "checking again")
            hosts.plug_in(1)
            self.assertEqual(run.wait(), 0, run.text())
            self.assertIn("attempt 2: 2 ranks", run.text())
            self.assertEqual(len(run.steps()), 240)
            self.assertEqual(run.left_over(), [])

    def test_a_link_that_loses_packets(self):
        with Hosts(2) as hosts:
            run = self.launch(hosts, "loss", "--hosts", ",".join(hosts.names), "--hang-timeout",
                              "60s")
            run.reach(25)
            injector = fault_injection.Injector(hosts, run, random.Random(1))
            undo = injector.lose_packets()
            # TCP resends a lost packet after 0.2 s, so there are only a few steps per second.
            run.reach(run.step() + 5)
            dropped = "".join(network_lab.call("tc", "-n", hosts.namespace(host), "-s", "qdisc")
                              for host in range(2))
            undo()
            self.assertRegex(dropped, r"pfifo[^\n]*limit 0p\n Sent 0 bytes 0 pkt \(dropped [1-9]")
            self.assertEqual(run.wait(), 0, run.text())
            self.assertNotIn("attempt 2:", run.text())
            self.assertEqual(len(run.steps()), 240)
            self.assertEqual(run.left_over(), [])

    def test_hosts_that_do_not_come_back(self):
        with Hosts(2) as hosts:
            run = self.launch(hosts, "never", "--hosts", ",".join(hosts.names), "--host-timeout",
                              "6s", "--host-wait", "2s")
            run.reach(5)
            hosts.cut_power(1)
            self.assertEqual(run.wait(), 1, run.text())
            self.assertIn("1 of 2 hosts can be used, 2 are needed (see the lines above): give "
                          "--min-hosts", run.text())
            # The checkpoint of step 20 may have been incomplete when the power failed.
            self.assertEqual(run.left_over(half_written=False), [])

    def doctor(self, hosts, *options):
        done = subprocess.run(
            [*hosts.before, self.program, "doctor", "--agent", hosts.agent, "--interface",
             "10.77.0.0/24", "--hosts", ",".join(hosts.names), *options], capture_output=True,
            text=True, check=False, stdin=subprocess.DEVNULL, timeout=600)
        return done.returncode, done.stdout + done.stderr

    def test_closed_ports_are_found_before_the_start(self):
        with Hosts(4) as hosts:
            one, two, three, four = hosts.names
            hosts.close_ports(1, 1024, 20000)  # only the ports of the ranks' values
            for rank, other in ((2, 3), (3, 2)):
                hosts.close_ports(rank, 1024, 65534, to=other)
            run = self.launch(hosts, "closed", "--hosts", ",".join(hosts.names))
            self.assertEqual(run.wait(), 1, run.text())
            self.assertFalse(run.folder.exists(), run.text())
            status, told = self.doctor(hosts, "--quick")
            self.assertEqual(status, 1, told)
            for text in (run.text(), told):
                # The launcher's machine does not exchange the ranks' values.
                self.assertRegex(text, rf"{two} +cannot be reached from {one}, {three}, {four} at "
                                       rf"TCP port 1024 \(values of the ranks\), {two}: no answer "
                                       r"within 4 s: open TCP ports 1024-65535 between all hosts")
                for place, other in ((three, four), (four, three)):
                    self.assertRegex(text, rf"{place} +cannot be reached from {other} at TCP port "
                                           r"\d+ \(values of the ranks\) and \d+ "
                                           r"\(messages of the launcher\)")
            for rank in range(4):
                hosts.open_ports(rank)
            status, told = self.doctor(hosts)
            self.assertEqual(status, 0, told)
            self.assertRegex(told, r"link from +to 10\.77\.0\.1 +to 10\.77\.0\.2")
            self.assertRegex(told, r"\n10\.77\.0\.1 +- +[\d.]+ [MG]b/s, [\d.]+ [um]s")
            self.assertRegex(told, r"--bandwidth [\d.]+[MG]b/s --latency \d+us")

    def test_the_rates_of_links_are_measured(self):
        with Hosts(3, Link(rate_bits=50e6)) as hosts:
            plain = [hosts.plain_rate(0, 1)]
            status, told = self.doctor(hosts)
            plain.append(hosts.plain_rate(0, 1))
            self.assertEqual(status, 0, told)
            table = told[told.index("link from"):].split("\n\n")[0]
            rates = [float(rate) * (1e3 if unit == "k" else 1e6)
                     for rate, unit in re.findall(r"([\d.]+) ([kM])b/s,", table)]
            self.assertEqual(len(rates), 6, told)
            for rate in rates:
                # A link sends no more than it can, headers excluded. A busy machine sends less, and so
                # did a plain transfer at the same time.
                self.assertLess(rate, 52e6, told)
                self.assertGreater(rate, 0.3 * min(plain), told)

    def test_a_firewall_with_the_ports_of_the_document(self):
        block = next(block for block in DOCUMENT.split("```")[1::2] if "OMPI_MCA_btl" in block)
        variables = dict(word.split("=") for word in block.split() if "=" in word)
        self.assertEqual(len(variables), 4)  # two of them for two series of Open MPI
        with Hosts(2) as hosts:
            for rank in range(2):
                # The firewall does not restrict source ports of outgoing connections.
                network_lab.call("ip", "netns", "exec", hosts.namespace(rank), "sysctl", "-w",
                                 "net.ipv4.ip_local_port_range=50000 60999")
                hosts.close_ports(rank, 1024, 39999)
                hosts.close_ports(rank, 42000, 49999)
            for number, given in enumerate(({}, variables)):
                with unittest.mock.patch.dict(os.environ, given):
                    run = self.launch(hosts, f"firewall-{number}", "--hosts",
                                      ",".join(hosts.names), more=["--set", "run.steps=40"])
                    self.assertEqual(run.wait(), 0 if given else 1, run.text())
            self.assertEqual(len(run.steps()), 40)
            self.assertEqual(run.left_over(), [])

    def test_a_link_that_is_gone_leaves_one_host_out(self):
        with Hosts(3) as hosts:
            run = self.launch(hosts, "unlinked", "--hosts", ",".join(hosts.names), "--min-hosts",
                              "2", more=["--set", "train_batch_size=12"])
            run.reach(25)
            for rank, other in ((1, 2), (2, 1)):
                hosts.close_ports(rank, 1024, 65534, to=other)
            os.kill(run.rank_pid(0), signal.SIGKILL)
            self.assertEqual(run.wait(), 0, run.text())
            self.assertIn(f"{hosts.names[2]} is excluded: not all others reach it", run.text())
            self.assertIn("the run continues on 2 of 3 ranks", run.text())
            self.assertEqual(len(run.steps()), 240)
            self.assertEqual(run.left_over(), [])


if __name__ == "__main__":
    launched_hosts.run_tests()
