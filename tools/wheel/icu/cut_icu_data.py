#!/usr/bin/env python3
"""Cuts ICU's data (icudt76l.dat, 31 MB) to what onebit reads: abbreviations, names of locales, the
normal form NFKC.

Other normal forms and properties of characters are tables in ICU's code.

    cut_icu_data.py FROM TO
"""

import pathlib
import re
import struct
import sys

# The lists of abbreviations (brkitr), the list of locales, what opening a bundle reads, and NFKC
# (text/normalizer.cc).
KEPT = re.compile(r"brkitr/[A-Za-z_]*\.res|(res_index|root|pool|icustd|icuver)\.res|nfkc\.nrm")


def read_entries(data: bytes) -> tuple[bytes, list[tuple[str, bytes]]]:
    """The header and the items, by name, of a package of ICU's data ("CmnD")."""
    header_size = struct.unpack_from("<H", data)[0]
    if data[2:4] != b"\xda\x27" or data[12:16] != b"CmnD":
        sys.exit("cut_icu_data: this is no package of ICU's data for a little-endian machine")
    body = data[header_size:]
    (count,) = struct.unpack_from("<I", body)
    places = [struct.unpack_from("<II", body, 4 + 8 * i) for i in range(count)]
    ends = [start for _, start in places[1:]] + [len(body)]
    entries = []
    for (name_at, start), end in zip(places, ends):
        name = body[name_at : body.index(b"\0", name_at)].decode()
        entries.append((name, body[start:end]))
    return data[:header_size], entries


def write_entries(header: bytes, entries: list[tuple[str, bytes]]) -> bytes:
    names_at = 4 + 8 * len(entries)
    names = b"".join(name.encode() + b"\0" for name, _ in entries)
    start = -(-(names_at + len(names)) // 16) * 16
    table, body = struct.pack("<I", len(entries)), b""
    name_at = names_at
    for name, item in entries:
        table += struct.pack("<II", name_at, start + len(body))
        name_at += len(name.encode()) + 1
        body += item + b"\0" * (-len(item) % 16)
    return header + (table + names).ljust(start, b"\0") + body


def main() -> None:
    source, target = map(pathlib.Path, sys.argv[1:])
    header, entries = read_entries(source.read_bytes())
    kept = [entry for entry in entries if KEPT.fullmatch(entry[0].partition("/")[2])]
    if len(kept) < 20:
        sys.exit(f"cut_icu_data: {source} has only {len(kept)} of the expected items")
    target.write_bytes(write_entries(header, kept))


if __name__ == "__main__":
    main()
