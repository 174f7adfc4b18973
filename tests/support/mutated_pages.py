"""Pages of real texts, changed in every way in which the rules of C4 tell pages apart.

Each page is drawn from a generator, so that a seed names a crawl.
"""

import gzip
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

LINE_ENDS = (
    *("\n", "\r", "\r\n", "\n\n", "\r\r\n", "\n\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x1f"),
    *("\x85", "\u2028", "\u2029", " \n ", "\t\n", "\u2028\u2029", "\x0b\n", "\x85\n", "\\n"),
)
ENDINGS = (
    *(
        "",
        ".",
        "?",
        "!",
        '"',
        "...",
        "..",
        "....",
        "…",
        ". . .",
        ".\u00a0",
        '."',
        '?"',
        '!"',
        '..."',
    ),
    *(
        ".\u201d",
        "\u201d",
        "\u201c",
        "'",
        ".'",
        ".)",
        ")",
        ":",
        ";",
        ",",
        "。",
        "！",
        "？",
        "\uff0e",
    ),
    *("؟", "।", ".[1]", ".[edit]", "...[2]", ". [citation needed]", ".\u200b", ".\ufeff", ".\x00"),
)
SPACES = (
    *(" ", "  ", "\t", "\u00a0", "\u1680", "\u2000", "\u2009", "\u200a", "\u202f", "\u205f"),
    *("\u3000", "\x1f", "\u200b", "\ufeff", "\x00", "\u180e", "\u2060"),
)
CITATIONS = (
    *(
        "[1]",
        "[]",
        "[12345]",
        "[\u0661\u0662]",
        "[\u0967]",
        "[\uff11]",
        "[\u00b2]",
        "[edit]",
        "[Edit]",
    ),
    *("[citation needed]", "[citation  needed]", "[1", "1]", "[[1]]", "[1][2]", "[ 1]", "[a]"),
)
PHRASES = (
    *("lorem ipsum", "Lorem Ipsum", "LOREM IPSUM", "lorem\u00a0ipsum", "lorem  ipsum"),
    *("LOREM \u0130PSUM", "lorem[1] ipsum", "lorem \u0131psum", "javascript", "JavaScript"),
    *("JAVASCR\u0130PT", "java script", "Java[1]Script", "terms of use", "Terms Of Use"),
    *("privacy policy", "PRIVACY POL\u0130CY", "cookie policy", "coo\u212aie policy"),
    *("uses cookies", "use of COO\u212aIES", "use cookies", "use  cookies", "use cookie"),
    *("{", "}", "{ x }", "\uff5b", "if (a) { b(); }"),
)
BOUNDARIES = (
    *("", " ", "\n", "\t", ".", ",", "-", "_", "'", "0", "a", "\u00a0", "\u0301", "é", "\u200b"),
    *("\u2019", "字"),
)
FIELD_LINES = (
    *("WARC/1.0", "WARC/1.1", " WARC/1.0 ", "WARC/1.0.", "WARC-Type: conversion", "WARC is a form"),
    *("Content-Type: text/html", "Content-Length: 3", "CONTENT-ID 7", "content-type: a"),
    *("WARC-Date: 2031-01-01T00:00:00Z", "WARC-Date:", "WARC-Target-URI:", "Contents of a page."),
    "WARC-Target-URI: http://moved.example.com/inside",
)
DATES = (
    *("2019-04-18T10:00:00Z", "2019-04-18T10:00:01Z", "2019-04-26T00:00:00Z", "2020", "2019-4-18"),
    *("18 April 2019", "2019-04-18T10:00:00+02:00", "a"),
)
ADDRESSES = {  # parts of an address, in this order
    "scheme": (
        *("", "http://", "https://www.", "https://WWW.", "HTTP://", "Https://", "ftp://", "//"),
        *("x-1.y+z:", "x-1.y+z://", "a b://", "://", "///", "http:/", "é://", "ht//tp://"),
    ),
    "user": ("", "user@", "a:b@", "a@b@", "@"),
    "part": (
        *("", "news", "www.news", "edition", "edition.i", "m", "abonnes", "mobile", "a.b", "News"),
        ".",
    ),
    "domain": (
        *("bbc.co.uk", "cnn.com", "spiegel.de", "lemonde.fr", "abc.net.au", "evz.ro"),
        *("example.com", "co.uk", "notcnn.com", "com", "CNN.com", "bbc.co.UK", "cnn.com "),
        *(" cnn.com", "evz\u3002ro", "bbc\uff0eco.uk", "spiegel\uff61de", "cnn..com", "[::1]"),
        *("10.0.0.1", ""),
    ),
    "end": ("", ".", "..", "\u3002", ". ", " ."),
    "path": (
        *("", "/", "/2019/04/18/a.html", "?page=2", "#top", ":8080/x", ":", "/cnn.com/bbc.co.uk"),
        *("//cnn.com", "?u=http://cnn.com", "/http://www.cnn.com/", "#@cnn.com", "\\@cnn.com"),
    ),
}
NEWS = {  # domain -> listed subdomains, or True for all
    "bbc.co.uk": ["", "news", "www.news"],
    "cnn.com": ["", "edition", "edition.i"],
    "spiegel.de": True,
    "lemonde.fr": ["", "abonnes"],
    "abc.net.au": ["", "mobile"],
    "evz.ro": [""],
}
LAYOUTS = ("members", "stream", "cuts")
PAGE_CHARS = 190_000
LONG_WORD = 1000


class Record(NamedTuple):
    """A record of a WET file."""

    url: str
    date: str
    text: str

    def __bytes__(self) -> bytes:
        fields = ["WARC/1.0", "WARC-Type: conversion"]
        if self.url:
            fields.append(f"WARC-Target-URI: {self.url}")
        if self.date:
            fields.append(f"WARC-Date: {self.date}")
        fields += ["Content-Type: text/plain", f"Content-Length: {len(self.text.encode())}"]
        return ("\r\n".join(fields) + f"\r\n\r\n{self.text}\r\n\r\n").encode()


class Mutator:
    """Draws pages: a part of a real text, changed in up to four ways.

    Args:
        draw: generator.
        texts: real pages, each several lines.
        words: listed words, each used in turn.
    """

    def __init__(self, draw: Random, texts: Sequence[str], words: Sequence[str]) -> None:
        self.draw = draw
        self.texts = texts
        self.words = words
        self.listed = 0  # words used so far
        self.lines: list[str] = []  # of earlier pages
        self.addresses: list[str] = []
        self.changes: tuple[Callable[[list[str]], None], ...] = (
            *(self.end_lines, self.add_spaces, self.cite, self.say, self.widen, self.lengthen),
            *(self.state_fields, self.swear, self.repeat, self.repeat_others, self.mix),
        )

    def record(self) -> Record:
        """Return the next page."""
        lines = self.part()
        for change in self.draw.sample(self.changes, self.draw.choice((0, 1, 1, 2, 3, 4))):
            change(lines)
        self.lines = (self.lines + lines)[-400:]
        kind = self.draw.random()
        if kind < 0.02:
            lines = [self.draw.choice(("", " ", "\u00a0", "\u2028", "\ufeff", "\x00"))]
        elif kind < 0.03:
            lines = [self.sized(PAGE_CHARS + self.draw.randint(-1, 1))]
        end = self.draw.choice(LINE_ENDS) if self.draw.random() < 0.4 else "\n"
        return Record(self.address(), self.date(), end.join(lines))

    def part(self) -> list[str]:
        """Return some lines of a real page."""
        lines = self.draw.choice(self.texts).split("\n")
        first = self.draw.randrange(len(lines))
        return lines[first : first + self.draw.randint(2, 14)]

    def some(self, lines: list[str]) -> list[int]:
        """Return the places of the lines to change."""
        share = self.draw.choice((0.1, 0.3, 1))
        return [index for index in range(len(lines)) if self.draw.random() < share]

    def address(self) -> str:
        """Return a new address, or one of an earlier page in this form or another."""
        kind = self.draw.random()
        if self.addresses and kind < 0.25:
            url = self.draw.choice(self.addresses[-40:])
            forms = (
                url,
                url + "/",
                f"{url}?utm_a=1",
                f"{url}?ref",
                f"https://www.{url}",
                url + "//",
            )
            return self.draw.choice(forms)
        if kind < 0.26:
            return ""
        parts = {name: self.draw.choice(values) for name, values in ADDRESSES.items()}
        if self.draw.random() < 0.5:  # else most hosts are unusual
            parts |= {"scheme": "http://", "user": "", "end": "", "domain": "cnn.com", "part": ""}
        parts["path"] += f"/{len(self.addresses)}"
        dot = "." if parts["part"] else ""
        url = "".join(value + dot * (name == "part") for name, value in parts.items())
        self.addresses.append(url)
        return url

    def date(self) -> str:
        return "" if self.draw.random() < 0.01 else self.draw.choice(DATES)

    def sized(self, size: int) -> str:
        """Return a page of a number of characters."""
        line = f"Page {len(self.addresses)} has many lines that say the same thing. " * 20 + "\n"
        return (line.replace(" \n", "\n") * (size // len(line) + 2))[: size - 1] + "."

    def end_lines(self, lines: list[str]) -> None:
        for index in self.some(lines):
            lines[index] = lines[index].rstrip('.?!"') + self.draw.choice(ENDINGS)

    def add_spaces(self, lines: list[str]) -> None:
        for index in self.some(lines):
            space, line = self.draw.choice(SPACES), lines[index]
            forms = (space + line, line + space, line.replace(" ", space), space + line + space)
            lines[index] = self.draw.choice(forms)

    def cite(self, lines: list[str]) -> None:
        for index in self.some(lines):
            lines[index] = self.insert(lines[index], self.draw.choice(CITATIONS))

    def say(self, lines: list[str]) -> None:
        index = self.draw.randrange(len(lines))
        lines[index] = self.insert(lines[index], f" {self.draw.choice(PHRASES)} ")

    def swear(self, lines: list[str]) -> None:
        index = self.draw.randrange(len(lines))
        word = self.words[self.listed % len(self.words)]
        self.listed += 1
        before, after = self.draw.choice(BOUNDARIES), self.draw.choice(BOUNDARIES)
        form = self.draw.choice((word, word, word.upper(), word.title()))
        lines[index] = self.insert(lines[index], f"{before}{form}{after}")

    def widen(self, lines: list[str]) -> None:
        """Write lines in letters of full width, or in capitals."""
        wide = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}
        for index in self.some(lines):
            line = lines[index]
            lines[index] = self.draw.choice((line.translate(wide), line.upper(), line.title()))

    def lengthen(self, lines: list[str]) -> None:
        """Add a word at the border of the longest that is allowed."""
        index = self.draw.randrange(len(lines))
        letter = self.draw.choice(("x", "é", "字", "\U0001d4b3", "x\u200b", "x\u0301"))
        size = LONG_WORD + self.draw.randint(-1, 1)
        lines[index] = self.insert(lines[index], f" {(letter * size)[:size]} ")

    def state_fields(self, lines: list[str]) -> None:
        lines.insert(self.draw.randint(0, len(lines)), self.draw.choice(FIELD_LINES))

    def repeat(self, lines: list[str]) -> None:
        line = self.draw.choice(lines)
        forms = (line, line.upper(), f" {line}", line + line)
        for _ in range(self.draw.randint(1, 3)):
            lines.insert(self.draw.randint(0, len(lines)), self.draw.choice(forms))

    def repeat_others(self, lines: list[str]) -> None:
        """Add lines of earlier pages."""
        if self.lines:
            first = self.draw.randrange(len(self.lines))
            lines += self.lines[first : first + self.draw.randint(1, 8)]

    def mix(self, lines: list[str]) -> None:
        """Add lines of another page, of any language."""
        lines += self.part()

    def insert(self, line: str, text: str) -> str:
        place = self.draw.choice((0, len(line), self.draw.randint(0, len(line))))
        return line[:place] + text + line[place:]


def write_wet_files(folder: Path, records: Sequence[Record], draw: Random) -> list[Path]:
    """Write records as two files of each layout; return them in order."""
    paths = []
    for number in range(2 * len(LAYOUTS)):
        layout = LAYOUTS[number % len(LAYOUTS)]
        pieces = [bytes(record) for record in records[number :: 2 * len(LAYOUTS)]]
        if layout != "members":
            whole = b"".join(pieces)
            cuts = sorted(draw.sample(range(len(whole)), 50)) if layout == "cuts" else []
            borders = [0, *cuts, len(whole)]
            pieces = [whole[a:b] for a, b in itertools.pairwise(borders)]
        paths.append(folder / f"{number}.warc.wet.gz")
        paths[-1].write_bytes(b"".join(gzip.compress(item, 1, mtime=0) for item in pieces))
    return paths
