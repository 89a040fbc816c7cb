"""The links of tools/network_lab.py: their properties, and how they are set up in the kernel."""
import argparse
import dataclasses
import re
import subprocess


class CannotRun(Exception):
    """The network cannot be made on this machine. The message is one line."""


@dataclasses.dataclass(frozen=True)
class Link:
    """The properties of a rank's link, in both directions. Rate 0: unlimited."""
    rate_bits: float = 0
    delay_seconds: float = 0  # one way, from rank to rank
    loss: float = 0           # share of the packets, one way


def quantity(text, units, what):
    match = re.fullmatch(r"([\d.]+)([a-z%]+)", text)
    if not match or match.group(2) not in units:
        raise argparse.ArgumentTypeError(
            f"\"{text}\" is no {what}; one is written like 2.5{next(iter(units))} "
            f"(units: {', '.join(units)})")
    return float(match.group(1)) * units[match.group(2)]


def rate_of(text):
    """Returns bits per second, or 0 for "none"."""
    return 0 if text == "none" else quantity(
        text, {"mbit": 1e6, "gbit": 1e9, "kbit": 1e3, "bit": 1}, "rate")


def delay_of(text):
    return quantity(text, {"ms": 1e-3, "us": 1e-6, "s": 1}, "delay")


def loss_of(text):
    return quantity(text, {"%": 1e-2}, "loss")


def call(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        said = " ".join(done.stderr.split()) or f"ended with status {done.returncode}"
        raise CannotRun(f"{' '.join(map(str, words))}: {said}")
    return done.stdout


def shape(namespace, device, link, far_end):
    """Shapes the traffic that leaves through `device`. Only the far end adds delay and loss, so
    that they apply once on the way from rank to rank."""
    parent = ["root"]
    if far_end and (link.delay_seconds or link.loss):
        # The queue holds the packets in flight. At long delays the default of 1000 would drop some.
        words = ["netem", "limit", 100000]
        if link.delay_seconds:
            words += ["delay", f"{link.delay_seconds * 1e6:.0f}us"]
        if link.loss:
            words += ["loss", f"{link.loss * 100:g}%"]
        try:
            call("tc", "-n", namespace, "qdisc", "add", "dev", device, *parent, "handle", "1:",
                 *words)
        except CannotRun as error:
            if link.delay_seconds:
                raise CannotRun(f"delay needs the kernel's sch_netem: {error}") from error
            lose(namespace, device, link.loss)
        parent = ["parent", "1:1"]
    if not link.rate_bits:
        return
    rate_bytes = link.rate_bits / 8
    # The burst covers a late timer (0.5 ms) and at least a whole segment of 64 KiB, which would be
    # cut into packets otherwise. A switch port has a queue of some milliseconds. The host's own
    # queue is long enough to drop nothing, as TCP itself keeps it short there.
    burst = max(128 << 10, rate_bytes * 0.5e-3)
    queue = max(256 << 10, rate_bytes * 10e-3) if far_end else max(4 << 20, rate_bytes * 50e-3)
    call("tc", "-n", namespace, "qdisc", "add", "dev", device, *parent, "handle", "10:", "tbf",
         "rate", f"{link.rate_bits:.0f}bit", "burst", f"{burst:.0f}", "limit",
         f"{burst + queue:.0f}")


def lose(namespace, device, share):
    """Drops a share of the packets that leave through `device`, on a kernel without netem. Four BPF
    instructions draw a random number per packet and send it either to class 1:1 or to 1:2, whose
    queue has no room."""
    draw = f"32 0 0 {0xfffff000 + 56},53 0 1 {int(share * 2**32)},6 0 0 0,6 0 0 {0x10002}"
    words = ["tc", "-n", namespace]
    place = ["add", "dev", device]
    call(*words, "qdisc", *place, "root", "handle", "1:", "htb", "default", "1")
    for number in (1, 2):
        call(*words, "class", *place, "parent", "1:", "classid", f"1:{number}", "htb", "rate",
             "40gbit", "quantum", "60000")
    call(*words, "qdisc", *place, "parent", "1:2", "pfifo", "limit", "0")
    call(*words, "filter", *place, "parent", "1:", "protocol", "all", "bpf", "bytecode",
         f"4,{draw}")
