"""Find the instructions with a result that depends on the maker or model of the CPU (D-043).

python tests/support/other_cpu/find_sites.py

writes sites.json next to this file: for the libraries of TensorFlow, NumPy and SciPy the places of

- CPUID, by which code is chosen,
- RSQRTPS, RCPPS and their scalar forms: IEEE 754 does not define their result,
- their AVX-512 relatives.

The bytes of such an instruction also occur inside of others. So each occurrence is confirmed by a
disassembly (objdump) that starts where its function does, by the table of `.eh_frame_hdr` or by a
symbol. It takes half a minute, so sites.json keeps the result for the locked wheels; tests search
other wheels (of another Python, say) again.
"""

import bisect
import hashlib
import importlib.metadata
import json
import re
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

SITES = Path(__file__).parent / "sites.json"
PACKAGES = ("tensorflow", "numpy", "scipy")
CHUNK = 1 << 24  # bytes that are searched at a time
LONGEST_INSTRUCTION = 15
NOP = b"\x90"
MNEMONIC = re.compile(r"\b(cpuid|v?r(?:sqrt|cp)[ps]s|vr(?:sqrt|cp)(?:14|28)[ps][sd])\b")
LINE = re.compile(r"^\s*([0-9a-f]+):\t((?:[0-9a-f]{2} )+)\s*\t?(.*)$")
SYMBOL = np.dtype(
    {
        "names": ["name", "info", "other", "section", "address", "length"],
        "formats": ["<u4", "u1", "u1", "<u2", "<u8", "<u8"],
    }
)


class Section(NamedTuple):
    """A section of an ELF file."""

    name: str
    kind: int
    flags: int
    address: int
    offset: int
    length: int


def sections_of(image: np.ndarray) -> list[Section]:
    """Return the sections of a 64-bit little-endian ELF file."""
    header = image[:64].tobytes()
    if header[:6] != b"\x7fELF\x02\x01":
        return []
    (start,) = struct.unpack_from("<Q", header, 0x28)
    width, count, names = struct.unpack_from("<HHH", header, 0x3A)
    rows = [
        struct.unpack_from("<IIQQQQ", image[start + width * row :][:64].tobytes())
        for row in range(count)
    ]
    text = image[rows[names][4] :][: rows[names][5]].tobytes()
    return [Section(text[row[0] :].split(b"\0", 1)[0].decode(), *row[1:]) for row in rows]


def function_starts(image: np.ndarray, sections: list[Section]) -> list[int]:
    """Return the addresses at which functions start, sorted."""
    starts: set[int] = set()
    for section in sections:
        content = image[section.offset : section.offset + section.length]
        if section.name == ".eh_frame_hdr" and content[1:4].tolist() == [0x1B, 0x03, 0x3B]:
            # A sorted table of pairs of 32-bit numbers relative to the section.
            table = np.frombuffer(content[12:].tobytes(), "<i4")[::2].astype(np.int64)
            starts |= set((table + section.address).tolist())
        if section.name in (".symtab", ".dynsym"):
            symbols = np.frombuffer(content.tobytes(), SYMBOL)
            symbols = symbols[((symbols["info"] & 15) == 2) & (symbols["section"] != 0)]
            starts |= set(symbols["address"].tolist())
    return sorted(starts)


def candidates(code: np.ndarray) -> Iterator[int]:
    """Yield offsets at which the bytes of such an instruction occur."""
    for begin in range(0, len(code), CHUNK):
        block = np.asarray(code[begin : begin + CHUNK + 8])
        a, b, c, d, e = (block[shift : len(block) - 4 + shift] for shift in range(5))
        escape = a == 0x0F
        legacy = escape & ((b == 0x52) | (b == 0x53))
        vex = (a == 0xC5) & ((c == 0x52) | (c == 0x53))
        vex |= (a == 0xC4) & ((b & 0x1F) == 1) & ((d == 0x52) | (d == 0x53))
        evex_opcode = ((e >= 0x4C) & (e <= 0x4F)) | ((e >= 0xCA) & (e <= 0xCD))
        evex = (a == 0x62) & ((b & 0x07) == 2) & evex_opcode
        for offset in np.flatnonzero((escape & (b == 0xA2)) | legacy | vex | evex).tolist():
            if offset < CHUNK:
                yield begin + offset


def confirmed(code: np.ndarray, address: int, starts: list[int]) -> dict[int, tuple[bytes, str]]:
    """Return address -> bytes and mnemonic of the instructions, by disassembly from the start.

    Args:
        code: bytes of an executable section.
        address: of the section.
        starts: addresses of functions.
    """
    last_by_start: dict[int, int] = {}
    for offset in candidates(code):
        index = bisect.bisect_right(starts, address + offset) - 1
        start = max(starts[index] if index >= 0 else address, address)
        last_by_start[start] = max(last_by_start.get(start, 0), address + offset)
    pieces, origins, length = [], [], 0
    for start, end in sorted(last_by_start.items()):
        piece = code[start - address : end - address + LONGEST_INSTRUCTION].tobytes()
        origins.append((length, start))
        # The last instruction of a piece may be cut: NOPs let the next piece begin aligned.
        pieces += [piece, NOP * 16]
        length += len(piece) + 16
    if not pieces:
        return {}
    instructions: dict[int, tuple[bytes, str]] = {}
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        file.write(b"".join(pieces))
        file.flush()
        command = ["objdump", "-D", "-w", "-b", "binary", "-m", "i386:x86-64", file.name]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout or ():
                if (match := MNEMONIC.search(line)) and (columns := LINE.match(line)):
                    position = int(columns[1], 16)
                    row = bisect.bisect_right(origins, (position, sys.maxsize)) - 1
                    location = origins[row][1] + position - origins[row][0]
                    instructions[location] = (bytes.fromhex(columns[2].replace(" ", "")), match[1])
    return instructions


def sites_of(path: Path) -> dict[str, dict[str, str]]:
    """Return the sites of a library: kind -> address -> bytes, both hexadecimal."""
    image = np.memmap(path, np.uint8, "r")
    sections = sections_of(image)
    starts = function_starts(image, sections)
    sites: dict[str, dict[str, str]] = {}
    for section in sections:
        if section.flags & 4 and section.kind == 1:  # executable, with contents
            code = image[section.offset : section.offset + section.length]
            for location, (raw, mnemonic) in sorted(
                confirmed(code, section.address, starts).items()
            ):
                sites.setdefault(kind_of(mnemonic), {})[f"{location:x}"] = raw.hex()
    return sites


def kind_of(mnemonic: str) -> str:
    """Return the group of an instruction."""
    if mnemonic == "cpuid":
        return "cpuid"
    return "avx512" if mnemonic[-4:-2].isdigit() else "approximate"


def libraries_of(package: str) -> dict[str, importlib.metadata.PackagePath]:
    """Return name -> file of the shared libraries of an installed package."""
    files = importlib.metadata.files(package) or ()
    return {file.as_posix(): file for file in files if ".so" in file.name and file.hash}


def release_of(package: str) -> str:
    """Return a hash of the hashes of a package's libraries, which its wheel lists."""
    lines = sorted(f"{name} {file.hash.value}" for name, file in libraries_of(package).items())
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def sites_of_package(package: str) -> dict[str, Any]:
    """Return the release of a package and its libraries -> sites, without those that have none."""
    libraries = {
        name: sites
        for name, file in sorted(libraries_of(package).items())
        if (sites := sites_of(Path(str(file.locate()))))
    }
    return {"release": release_of(package), "libraries": libraries}


def main(packages: list[str]) -> None:
    """Write the sites of the packages' libraries."""
    sites = {package: sites_of_package(package) for package in packages}
    SITES.write_text(json.dumps(sites, indent=1) + "\n", encoding="utf-8")
    for package in sites.values():
        for name, kinds in package["libraries"].items():
            print(name, {kind: len(addresses) for kind, addresses in kinds.items()})


if __name__ == "__main__":
    main(sys.argv[1:] or list(PACKAGES))
