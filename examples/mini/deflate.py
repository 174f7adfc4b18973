"""Gzip in plain Python: the same bytes on every machine.

The bytes that `zlib` writes depend on its build (zlib-ng and zlib 1.x differ), so files that are
to be made again byte for byte need a writer of their own. This one finds repeats with a table of
three-byte groups and writes them with the fixed codes of RFC 1951, section 3.2.6; every reader
of gzip understands it. About a sixth larger than zlib's best.
"""

import struct
import zlib

MIN_MATCH = 3
MAX_MATCH = 258
WINDOW = 32_768
CHAIN = 12  # earlier places of a group that are compared
END_OF_BLOCK = 256
HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"  # no name, no time, unknown system


def _ranges(groups: tuple[tuple[int, int], ...], start: int) -> list[tuple[int, int]]:
    """Return (first value, extra bits) of each code, from (codes, extra bits) groups."""
    table = []
    for codes, extra in groups:
        for _ in range(codes):
            table.append((start, extra))
            start += 1 << extra
    return table


LENGTHS = _ranges(((8, 0), (4, 1), (4, 2), (4, 3), (4, 4), (4, 5)), MIN_MATCH)
LENGTHS = [*LENGTHS, (MAX_MATCH, 0)]
DISTANCES = _ranges(((4, 0), *((2, extra) for extra in range(1, 14))), 1)


def _reversed(code: int, bits: int) -> int:
    return int(format(code, f"0{bits}b")[::-1], 2)


def _fixed_symbol(symbol: int) -> tuple[int, int]:
    """Return (code, bits) of a literal or length symbol, the code's first bit lowest."""
    if symbol < 144:
        code, bits = 0x30 + symbol, 8
    elif symbol < 256:
        code, bits = 0x190 + symbol - 144, 9
    elif symbol < 280:
        code, bits = symbol - 256, 7
    else:
        code, bits = 0xC0 + symbol - 280, 8
    return _reversed(code, bits), bits


def _coded(table: list[tuple[int, int]], highest: int, symbols: list[tuple[int, int]]) -> list:
    """Return for every value its (bits to write, their number): code, then extra bits."""
    coded: list = [(0, 0)] * (highest + 1)
    for (first, extra), (code, bits) in zip(table, symbols, strict=True):
        for value in range(first, min(first + (1 << extra), highest + 1)):
            coded[value] = (code | (value - first) << bits, bits + extra)
    return coded


LITERALS = [_fixed_symbol(symbol) for symbol in range(257)]
LENGTH_CODES = _coded(LENGTHS, MAX_MATCH, [_fixed_symbol(257 + n) for n in range(len(LENGTHS))])
DISTANCE_CODES = _coded(DISTANCES, WINDOW, [(_reversed(n, 5), 5) for n in range(len(DISTANCES))])


def _match_length(data: bytes, earlier: int, here: int, longest: int) -> int:
    length = MIN_MATCH
    while length < longest and data[earlier + length] == data[here + length]:
        length += 1
    return length


def _longest_match(data: bytes, here: int, places: list[int]) -> tuple[int, int]:
    """Return (length, distance) of the best earlier copy; length 0 if there is none."""
    longest = min(MAX_MATCH, len(data) - here)
    best, distance = 0, 0
    for earlier in places[-1 : -CHAIN - 1 : -1]:
        if here - earlier > WINDOW:
            break
        if best and data[earlier + best] != data[here + best]:
            continue
        length = _match_length(data, earlier, here, longest)
        if length > best:
            best, distance = length, here - earlier
        if length == longest:
            break
    return best, distance


def _pieces(data: bytes) -> list[tuple[int, int]]:
    """Return the (bits, number) pieces of the block that holds `data`."""
    pieces = [(0b011, 3)]  # last block, fixed codes
    seen: dict[bytes, list[int]] = {}
    here = 0
    while here < len(data):
        group = data[here : here + MIN_MATCH]
        places = seen.get(group, []) if len(group) == MIN_MATCH else []
        length, distance = _longest_match(data, here, places)
        if length:
            pieces += [LENGTH_CODES[length], DISTANCE_CODES[distance]]
        else:
            pieces.append(LITERALS[data[here]])
        for place in range(here, here + max(length, 1)):
            seen.setdefault(data[place : place + MIN_MATCH], []).append(place)
        here += max(length, 1)
    return [*pieces, LITERALS[END_OF_BLOCK]]


def _packed(pieces: list[tuple[int, int]]) -> bytes:
    packed = bytearray()
    pending, held = 0, 0
    for value, bits in pieces:
        pending |= value << held
        held += bits
        while held >= 8:
            packed.append(pending & 0xFF)
            pending >>= 8
            held -= 8
    if held:
        packed.append(pending)
    return bytes(packed)


def gzip_member(data: bytes) -> bytes:
    """Return `data` as one gzip member."""
    tail = struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFFFFFF)
    return HEADER + _packed(_pieces(data)) + tail
