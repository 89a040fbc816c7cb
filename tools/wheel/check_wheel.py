#!/usr/bin/env python3
"""Checks a wheel: its size, the systems that it runs on, that the program and the licences are inside,
and that it brings and needs no library of the machine.

    check_wheel.py WHEEL
"""

import pathlib
import re
import struct
import sys
import zipfile

PACKED_LIMIT = 20_000_000
UNPACKED_LIMIT = 60_000_000
OLDEST_C_LIBRARY = (2, 34)  # Debian 12, Ubuntu 22.04, RHEL 9
# What the files of a wheel may need of a machine: its C library, which needs libgcc_s.so.1 itself.
# libonebit_mpi.so also needs the machine's MPI.
SYSTEM_LIBRARIES = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libgcc_s.so.1",
                    "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
MPI_LIBRARIES = {"libmpi.so.40"}
LIBRARY_LIST = pathlib.Path(__file__).parent / "libraries.txt"


def inside_libraries() -> set[str]:
    """The libraries that a wheel contains as a part of its program."""
    lines = LIBRARY_LIST.read_text().splitlines()
    return {line.split()[0] for line in lines if line and not line.startswith("#")}


def needed_files() -> set[str]:
    return {"onebit/_core.abi3.so", "onebit/bin/onebit", "onebit/licenses/LICENSE",
            *(f"onebit/licenses/{name}.txt" for name in inside_libraries())}


def needed_libraries(file: bytes) -> set[str]:
    """DT_NEEDED of a 64-bit little-endian ELF file."""
    (sections_at,) = struct.unpack_from("<Q", file, 0x28)
    size, count = struct.unpack_from("<HH", file, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", file, sections_at + i * size)
               for i in range(count)]
    needed = set()
    for header in headers:
        if header[1] != 6:  # SHT_DYNAMIC
            continue
        start, length, names_at = header[4], header[5], headers[header[6]][4]
        for at in range(start, start + length, 16):
            tag, value = struct.unpack_from("<QQ", file, at)
            if tag == 1:  # DT_NEEDED
                end = file.index(b"\0", names_at + value)
                needed.add(file[names_at + value : end].decode())
    return needed


def problems_of(path: pathlib.Path) -> list[str]:
    problems = []
    packed = path.stat().st_size
    with zipfile.ZipFile(path) as wheel:
        unpacked = sum(entry.file_size for entry in wheel.infolist())
        print(f"{path.name}: {packed} bytes, {unpacked} unpacked")
        if packed > PACKED_LIMIT or unpacked > UNPACKED_LIMIT:
            problems.append(f"at most {PACKED_LIMIT} and {UNPACKED_LIMIT} bytes are allowed")
        problems += [f"{name} is not inside"
                     for name in sorted(needed_files() - set(wheel.namelist()))]
        for name in wheel.namelist():
            file = wheel.read(name)
            if ".libs/" in name:
                problems.append(f"{name}: a library of the machine is inside")
            if file[:4] != b"\x7fELF":
                continue
            allowed = set(SYSTEM_LIBRARIES)
            if name.endswith("libonebit_mpi.so"):
                allowed |= MPI_LIBRARIES
            print(f"  {name}: {len(file)} bytes")
            problems += [f"{name} needs {library} of the machine"
                         for library in sorted(needed_libraries(file) - allowed)]
    tags = [(int(a), int(b)) for a, b in re.findall(r"manylinux_(\d+)_(\d+)_", path.name)]
    if not tags or min(tags) > OLDEST_C_LIBRARY:
        problems.append("its tag is not manylinux_{}_{} or older".format(*OLDEST_C_LIBRARY))
    return problems


def main() -> int:
    path = pathlib.Path(sys.argv[1])
    problems = problems_of(path)
    for problem in problems:
        print(f"{path.name}: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
