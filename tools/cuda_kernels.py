#!/usr/bin/env python3
"""Prints a table of the compiled kernels: registers, memory, occupancy, loads in flight.

Usage: cuda_kernels.py BUILD_FOLDER|OBJECT... [--filter TEXT]

Reads the machine code in the object files of a build with the CUDA backend. Needs no toolkit and no
GPU. Columns:

  arch       the architecture: 90 for sm_90
  threads    the most threads per block (__launch_bounds__), or "-" if the launch decides
  registers  registers per thread
  local      bytes of local memory per thread: spilled registers and arrays in memory
  shared     bytes of static shared memory per block (the launch chooses the size of dynamic shared
             memory, which is not in the objects)
  warps      resident warps per multiprocessor with blocks of that many threads (128 if the launch
             decides), limited by registers and static shared memory, at most 64 on sm_80, sm_90
             and sm_100
  code       instructions of the kernel
  loads      the most loads from global memory that are issued before one of them is waited for
  tensor     tensor-core instructions
"""
import argparse
import re
import struct
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

MACHINE_CUDA = 190  # e_machine of device code
# Records of .nv.info consist of a format, an attribute and a size or value.
FORMAT_WITH_SIZE = 0x04
ATTRIBUTE_MAX_THREADS, ATTRIBUTE_FRAME_SIZE, ATTRIBUTE_REGISTERS = 0x05, 0x11, 0x2F
# The opcode is the low twelve bits of an instruction of sm_70 and later.
LOAD_GLOBAL = 0x981
TENSOR_OPCODES = (0x23C, 0x237, 0x23F, 0x9F0, 0xDF0)  # HMMA, IMMA, DMMA, two of HGMMA
INSTRUCTION_BYTES, NO_BARRIER = 16, 7
# Resources of a multiprocessor by architecture: bytes of shared memory, warps.
SHARED_MEMORY = {80: 164 << 10, 86: 100 << 10, 89: 100 << 10, 90: 228 << 10, 100: 228 << 10}
WARPS = {80: 64, 86: 48, 89: 48, 90: 64, 100: 64}
REGISTERS, BLOCKS, USUAL_THREADS = 65536, 32, 128
# Shared memory that sm_80 and later reserve per block in addition to the block's own.
SHARED_OF_THE_SYSTEM = 1024


@dataclass
class Kernel:
    name: str
    source: str
    architecture: int
    registers: int = 0
    local_bytes: int = 0
    shared_bytes: int = 0
    threads: int = 0
    instructions: int = 0
    loads_in_flight: int = 0
    tensor_instructions: int = 0
    plain_name: str = field(default="", compare=False)

    @property
    def warps(self):
        """The warps that a multiprocessor holds at once of blocks of `threads` threads."""
        of_block = -(-(self.threads or USUAL_THREADS) // 32)
        registers_of_warp = -(-max(1, self.registers) * 32 // 256) * 256
        by_registers = REGISTERS // registers_of_warp // of_block
        shared = SHARED_MEMORY.get(self.architecture, 100 << 10)
        by_shared = shared // (self.shared_bytes + SHARED_OF_THE_SYSTEM)
        by_warps = WARPS.get(self.architecture, 48) // of_block
        return min(by_registers, by_shared, by_warps, BLOCKS) * of_block


def sections_of(elf):
    """Returns {name: (content in the file, bytes in memory)} of a 64-bit ELF file."""
    offset, = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, offset + i * size) for i in range(count)]
    strings = headers[names][4]
    sections = {}
    for header in headers:
        start = strings + header[0]
        name = elf[start:elf.index(b"\0", start)].decode()
        nothing_in_file = header[1] == 8  # SHT_NOBITS
        content = bytes() if nothing_in_file else elf[header[4]:header[4] + header[5]]
        sections[name] = (content, header[5])
    return sections


def symbol_names(sections):
    table, names = sections[".symtab"][0], sections[".strtab"][0]
    found = []
    for at in range(0, len(table), 24):
        start, = struct.unpack_from("<I", table, at)
        found.append(names[start:names.index(b"\0", start)].decode())
    return found


def attributes(info):
    """Yields (attribute, its 32-bit words) for the records of a .nv.info section."""
    at = 0
    while at + 4 <= len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        at += 4
        if form == FORMAT_WITH_SIZE:
            yield attribute, struct.unpack_from(f"<{size // 4}I", info, at)
            at += -(-size // 4) * 4


def fill_in_code(kernel, code):
    """Counts instructions and loads. In an instruction's upper half, bits 46 to 48 are the barrier
    that a load releases, and bits 52 to 57 the barriers that the instruction waits for."""
    waiting = {}
    for at in range(0, len(code) - INSTRUCTION_BYTES + 1, INSTRUCTION_BYTES):
        low, high = struct.unpack_from("<QQ", code, at)
        opcode, barrier, waited = low & 0xFFF, (high >> 46) & 7, (high >> 52) & 0x3F
        waiting = {one: count for one, count in waiting.items() if not waited >> one & 1}
        if opcode == LOAD_GLOBAL and barrier != NO_BARRIER:
            waiting[barrier] = waiting.get(barrier, 0) + 1
            kernel.loads_in_flight = max(kernel.loads_in_flight, sum(waiting.values()))
        kernel.tensor_instructions += opcode in TENSOR_OPCODES
    kernel.instructions = len(code) // INSTRUCTION_BYTES


def kernels_of_elf(elf, source):
    sections = sections_of(elf)
    flags, = struct.unpack_from("<I", elf, 0x30)
    abi = elf[8]
    architecture = flags >> 8 & 0xFF if abi >= 8 else flags & 0xFF
    names = symbol_names(sections)
    kernels = {}
    for section, (content, _) in sections.items():
        if section.startswith(".text."):
            name = section[len(".text."):]
            kernels[name] = Kernel(name, source, architecture)
            fill_in_code(kernels[name], content)
    for attribute, words in attributes(sections.get(".nv.info", (b"", 0))[0]):
        kernel = kernels.get(names[words[0]]) if words else None
        if kernel and attribute == ATTRIBUTE_REGISTERS:
            kernel.registers = words[1]
        elif kernel and attribute == ATTRIBUTE_FRAME_SIZE:
            kernel.local_bytes = words[1]
    for name, kernel in kernels.items():
        shared_bytes = sections.get(f".nv.shared.{name}", (b"", 0))[1]
        # From sm_90 on, the section includes the reserved shared memory.
        of_the_system = SHARED_OF_THE_SYSTEM if kernel.architecture >= 90 else 0
        kernel.shared_bytes = max(0, shared_bytes - of_the_system)
        for attribute, words in attributes(sections.get(f".nv.info.{name}", (b"", 0))[0]):
            if attribute == ATTRIBUTE_MAX_THREADS:
                kernel.threads = words[0] * words[1] * words[2]
    return list(kernels.values())


def device_code_of(content):
    """Yields the device ELF files in an object file."""
    at = content.find(b"\x7fELF", 1)
    while at >= 0:
        if struct.unpack_from("<H", content, at + 18)[0] == MACHINE_CUDA:
            yield content[at:]
        at = content.find(b"\x7fELF", at + 4)


def demangle(names):
    """Returns demangled names without parameters and without onebit's namespaces."""
    plain = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True,
                           check=True).stdout.splitlines()
    return [re.sub(r"^void |\(anonymous namespace\)::|onebit::|<unnamed>::", "",
                   re.sub(r"\((?!anonymous).*", "", name)) for name in plain]


def read_kernels(paths):
    """Returns all kernels of object files and of the objects in build folders. Raises OSError."""
    kernels = []
    for path in map(Path, paths):
        objects = sorted(path.rglob("*.cu.o")) if path.is_dir() else [path]
        for one in objects:
            for elf in device_code_of(one.read_bytes()):
                kernels += kernels_of_elf(elf, one.name.removesuffix(".o"))
    for kernel, plain in zip(kernels, demangle([k.name for k in kernels])):
        kernel.plain_name = plain
    return kernels


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0], epilog=__doc__.split("\n\n", 2)[2],
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", metavar="BUILD_FOLDER|OBJECT")
    parser.add_argument("--filter", default="", help="only kernels whose name contains this")
    chosen = parser.parse_args()
    kernels = [k for k in read_kernels(chosen.paths) if chosen.filter in k.plain_name]
    if not kernels:
        sys.exit("no kernel found: build with -DONEBIT_CUDA=ON and name the build folder, or .cu.o "
                 "files of it")
    print("arch threads registers local shared warps   code loads tensor  kernel")
    for k in kernels:
        print(f"{k.architecture:4} {k.threads or '-':>7} {k.registers:9} {k.local_bytes:5} "
              f"{k.shared_bytes:6} {k.warps:5} {k.instructions:6} "
              f"{k.loads_in_flight:5} {k.tensor_instructions:6}  {k.source}: {k.plain_name}")


if __name__ == "__main__":
    main()
