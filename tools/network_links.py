"""The links of tools/network_lab.py: what they are like, and how the kernel is told."""
import argparse
import dataclasses
import re
import subprocess


class CannotRun(Exception):
    """Such a network cannot be made on this machine; the message is one line."""


@dataclasses.dataclass(frozen=True)
class Link:
    """What one rank can send, and receive. Rate 0: as fast as the machine copies."""
    rate_bits: float = 0
    delay_seconds: float = 0  # from a rank to another one; the way back takes as long
    loss: float = 0           # share of the packets, from a rank to another one


def quantity(text, units, what):
    match = re.fullmatch(r"([\d.]+)([a-z%]+)", text)
    if not match or match.group(2) not in units:
        raise argparse.ArgumentTypeError(
            f"\"{text}\" is no {what}; one is written like 2.5{next(iter(units))} "
            f"(units: {', '.join(units)})")
    return float(match.group(1)) * units[match.group(2)]


def rate_of(text):
    """Bits a second; 0 for "none"."""
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
    """What leaves through `device`. Delay and loss are a matter of the far end alone, so that they
    count once on the way from rank to rank."""
    parent = ["root"]
    if far_end and (link.delay_seconds or link.loss):
        # The queue holds what is on its way; the default of 1000 packets would drop at long delays.
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
    # A burst is what one timer can be late; it takes a whole segment of 64 KiB at least, which
    # would be cut into packets otherwise. A switch's port has a queue of some milliseconds; a
    # machine's own is so long that it drops nothing, since there TCP itself keeps it short.
    burst = max(128 << 10, rate_bytes * 0.5e-3)
    queue = max(256 << 10, rate_bytes * 10e-3) if far_end else max(4 << 20, rate_bytes * 50e-3)
    call("tc", "-n", namespace, "qdisc", "add", "dev", device, *parent, "handle", "10:", "tbf",
         "rate", f"{link.rate_bits:.0f}bit", "burst", f"{burst:.0f}", "limit",
         f"{burst + queue:.0f}")


def lose(namespace, device, share):
    """Drops a share of the packets that leave through `device`, on a kernel without netem: four
    instructions draw a number for each and send it to one of two classes, of which one has a queue
    that takes nothing. The other is 1:1."""
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
