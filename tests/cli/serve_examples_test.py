#!/usr/bin/env python3
"""The files of examples/serve: what they start is a command that the program takes.

Usage: serve_examples_test.py ONEBIT
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples/serve"
UNIT, COMPOSE = EXAMPLES / "onebit-serve.service", EXAMPLES / "compose.yaml"


def unit_values(key):
    text = UNIT.read_text(encoding="utf-8").replace("\\\n", " ")
    return re.findall(rf"^{key}=(.*)$", text, re.MULTILINE)


def compose_command():
    text = COMPOSE.read_text(encoding="utf-8")
    return json.loads(re.search(r"^    command: (\[.*?\])$", text, re.MULTILINE | re.DOTALL)[1])


class Examples(unittest.TestCase):
    def check_command(self, command, key_file):
        """Every option is known, in its place: the only thing that the program lacks is the model."""
        self.assertEqual(pathlib.Path(command[0]).name, "onebit")
        self.assertIn("--model", command)
        with tempfile.TemporaryDirectory() as folder:
            key = pathlib.Path(folder) / "key"
            key.write_text("secret\n", encoding="utf-8")
            key.chmod(0o600)
            at = command.index("--api-key-file") + 1
            self.assertEqual(command[at], key_file)
            nowhere = f"{folder}/no-such-model"
            arguments = [str(key) if i == at else argument for i, argument in enumerate(command)][1:]
            at = arguments.index("--model") + 1
            arguments[at] = nowhere
            done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60,
                                  check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(nowhere, done.stderr)

    def test_what_the_unit_starts(self):
        command = shlex.split(unit_values("ExecStart")[0])
        self.check_command(command, "${CREDENTIALS_DIRECTORY}/key")
        self.assertEqual(unit_values("LoadCredential"), ["key:/etc/onebit-serve.key"])

    def test_what_compose_starts(self):
        self.check_command(compose_command(), "/run/secrets/key")

    def test_both_wait_longer_than_the_server_does(self):
        helped = subprocess.run([PROGRAM, "serve", "--help"], capture_output=True, text=True, check=True)
        # CLI11 writes a default as =30, and from version 2.4 on as [30].
        grace = int(re.search(r"--grace .*(?:=|\[)(\d+)\b(?! -)", helped.stdout)[1])
        self.assertGreater(int(unit_values("TimeoutStopSec")[0]), grace)
        stop = re.search(r"stop_grace_period: (\d+)s", COMPOSE.read_text(encoding="utf-8"))
        self.assertGreater(int(stop[1]), grace)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is not installed")
    def test_systemd_takes_the_unit(self):
        with tempfile.TemporaryDirectory() as folder:
            unit = pathlib.Path(folder) / UNIT.name
            text = UNIT.read_text(encoding="utf-8").replace("/usr/bin/onebit", PROGRAM)
            unit.write_text(text, encoding="utf-8")
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit],
                                  capture_output=True, text=True, check=False)
            lines = [line for line in done.stderr.splitlines() if UNIT.name in line]
            self.assertEqual(lines, [])

    def test_compose_is_yaml(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("PyYAML is not installed")
        service = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]["onebit"]
        self.assertEqual(service["command"], compose_command())
        self.assertEqual(service["ports"], ["127.0.0.1:8080:8080"])
        # The check is a script of bash.
        done = subprocess.run(["bash", "-n", "-c", service["healthcheck"]["test"][3]], check=False)
        self.assertEqual(done.returncode, 0)


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
