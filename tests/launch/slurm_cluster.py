"""A real Slurm (munged, slurmctld, one slurmd per host) over network namespaces that stand for
hosts. Its configuration, keys and state are in the lab's folder."""
import os
import pathlib
import re
import secrets
import shlex
import shutil
import subprocess
import time

from launched_hosts import Hosts
from network_lab import CannotRun, Link

PROGRAMS = {"munged": "munge", "slurmctld": "slurmctld", "slurmd": "slurmd",
            "sbatch": "slurm-client", "srun": "slurm-client", "scontrol": "slurm-client",
            "scancel": "slurm-client", "sinfo": "slurm-client"}
START_SECONDS = 30
CONTROL_PORT, HOST_PORT = 16817, 16818  # free, because the namespaces have no other services
# A requeued job waits for that many seconds until its old credentials have expired.
KEY_SECONDS = 5
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "BOOT_FAIL", "OUT_OF_MEMORY")


def check_programs():
    """Raises CannotRun if Slurm is not installed."""
    lacking = {package for program, package in PROGRAMS.items() if not shutil.which(program)}
    if lacking:
        raise CannotRun("there is no Slurm here: install " + " ".join(sorted(lacking)))


class SlurmCluster(Hosts):
    """`with SlurmCluster(2) as slurm: slurm.call("sbatch", ...)`. The hosts are named host0, host1
    and so on. Commands run on the machine of slurmctld. Raises CannotRun."""

    def __init__(self, count, link=Link()):
        super().__init__(count, link)
        self.daemons = []

    def __enter__(self):
        check_programs()
        super().__enter__()
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def close(self):
        # All other processes were started inside the namespaces, and end with them.
        super().close()
        for daemon in self.daemons:
            daemon.wait()
        self.daemons = []

    @property
    def environment(self):
        return {**os.environ, "SLURM_CONF": str(self.place / "slurm.conf")}

    @property
    def at_control(self):
        return ["ip", "netns", "exec", self.switch, "unshare", "--uts", "sh", "-c",
                "hostname control; exec \"$@\"", "sh"]

    def inside(self, host):
        """Adds a separate folder for PMIx's sockets, which have the same names on all hosts."""
        own = self.place / f"pmix-host{host}"
        mount = shlex.join(["mount", "--bind", str(own), str(self.place / "pmix")])
        return super().inside(host) + ["unshare", "--mount", "sh", "-c", f"{mount} && exec \"$@\"",
                                       "sh"]

    @property
    def place(self):
        return self.folder / "slurm"

    def start(self):
        self.folder.chmod(0o711)  # munged requires that all users can reach its socket
        self.place.mkdir(mode=0o755)
        for name in ("pmix", *(f"pmix-host{host}" for host in range(self.hosts))):
            (self.place / name).mkdir()
        (self.place / "mpi.conf").write_text(f"PMIxCliTmpDirBase={self.place}/pmix\n",
                                             encoding="utf-8")
        (self.place / "state").mkdir(mode=0o700)
        key = self.place / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(secrets.token_bytes(128))
        # Set explicitly, because the detection of the plugin fails in a namespace.
        (self.place / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n", encoding="utf-8")
        (self.place / "slurm.conf").write_text(self.configuration(), encoding="utf-8")
        self.run_daemon("munged", self.at_control, "--foreground", "--force", "--origin=10.77.0.254",
                        f"--key-file={key}", f"--socket={self.place}/munge.socket",
                        f"--pid-file={self.place}/munged.pid",
                        f"--log-file={self.place}/munged.log",
                        f"--seed-file={self.place}/munged.seed")
        self.wait_until("munged", (self.place / "munge.socket").exists)
        self.run_daemon("slurmctld", self.at_control, "-D", "-c")
        for host in range(self.hosts):
            self.run_daemon("slurmd", self.inside(host), "-D", "-N", f"host{host}")
        self.wait_until("slurmctld", self.hosts_are_idle)

    def configuration(self):
        hosts = "".join(f"NodeName=host{host} NodeAddr={self.address(host)} "
                        f"NodeHostname=host{host} CPUs=2 State=UNKNOWN\n"
                        for host in range(self.hosts))
        return (f"ClusterName={self.name}\n"
                "SlurmctldHost=control(10.77.0.254)\n"
                f"SlurmctldPort={CONTROL_PORT}\nSlurmdPort={HOST_PORT}\n"
                "SlurmUser=root\nSlurmdUser=root\n"
                f"AuthInfo=socket={self.place}/munge.socket,cred_expire={KEY_SECONDS}\n"
                f"StateSaveLocation={self.place}/state\n"
                f"SlurmdSpoolDir={self.place}/spool-%n\n"
                f"SlurmctldPidFile={self.place}/slurmctld.pid\n"
                f"SlurmdPidFile={self.place}/slurmd-%n.pid\n"
                f"SlurmctldLogFile={self.place}/slurmctld.log\n"
                f"SlurmdLogFile={self.place}/slurmd-%n.log\n"
                # These plugins do not need control groups.
                "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n"
                "JobAcctGatherType=jobacct_gather/none\n"
                "SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\n"
                # Hosts have the configured number of processors, whatever this machine has.
                "SlurmdParameters=config_overrides\n"
                "SchedulerParameters=sched_interval=2,batch_sched_delay=0,bf_interval=2\n"
                "ReturnToService=2\nMpiDefault=none\nKillWait=5\nMailProg=/bin/true\n"
                f"{hosts}"
                "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n")

    def run_daemon(self, program, before, *words):
        log = open(self.place / f"{program}-{len(self.daemons)}.out", "wb")
        with log:
            self.daemons.append(subprocess.Popen(
                [*before, shutil.which(program), *words], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, env=self.environment, start_new_session=True))

    def wait_until(self, what, is_there):
        until = time.monotonic() + START_SECONDS
        while not is_there():
            if time.monotonic() > until or any(one.poll() is not None for one in self.daemons):
                raise CannotRun(f"Slurm does not start here ({what}): {self.complaint()}")
            time.sleep(0.1)

    def complaint(self):
        """Returns the last error in any daemon's log."""
        found = "no error in its logs"
        for log in sorted(self.place.glob("*.log")) + sorted(self.place.glob("*.out")):
            for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
                if re.search(r"error|fatal", line, re.IGNORECASE):
                    found = f"{log.name}: {line}"
        return found

    def hosts_are_idle(self):
        done = self.ask("sinfo", "--noheader", "--format=%D %t")
        return done.returncode == 0 and done.stdout.split() == [str(self.hosts), "idle"]

    def ask(self, *words, **more):
        environment = {**self.environment, **more.pop("env", {})}
        return subprocess.run([*self.at_control, *map(str, words)], capture_output=True, text=True,
                              check=False, stdin=subprocess.DEVNULL, env=environment, **more)

    def submit(self, script, *options, **more):
        """Submits a script and returns the number of the job."""
        done = self.ask("sbatch", "--parsable", *options, script, **more)
        if done.returncode != 0:
            raise AssertionError(f"sbatch: {done.stderr}")
        return done.stdout.strip()

    def job(self, number):
        """Returns Slurm's facts of a job: {"JobState": "RUNNING", "Restarts": "0", ...}."""
        done = self.ask("scontrol", "--oneliner", "show", "job", number)
        return dict(word.split("=", 1) for word in done.stdout.split() if "=" in word)

    def wait_for_job(self, number, is_so, seconds):
        """Waits until `is_so` holds for the job's facts, it has ended, or `seconds` have passed,
        and returns its facts."""
        until = time.monotonic() + seconds
        while not is_so(job := self.job(number)) and job.get("JobState") not in ENDED:
            if time.monotonic() > until:
                break
            time.sleep(0.3)
        return job

    def change(self, number, *words):
        done = self.ask("scontrol", "update", f"JobId={number}", *words)
        if done.returncode != 0:
            raise AssertionError(f"scontrol update: {done.stderr}")

    def logs(self):
        return "\n".join(f"--- {log.name}\n" + log.read_text(errors="replace")
                         for log in sorted(pathlib.Path(self.place).glob("*.log")))
