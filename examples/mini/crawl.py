"""The mini crawl: which pages there are, what is wrong with some of them, and their files."""

from dataclasses import replace

import dirt
from deflate import gzip_member
from dice import Dice
from lexicon_pages import lexicon_sentences, page_topics
from parallel import sentences as parallel_sentences
from prose import BOOKS, page_paragraphs, page_title, paragraphs
from prose_other import OTHER
from selections import selection_files
from wet import Page, conversion, warcinfo

PAGES = {"en": 700, "de": 200, "fr": 200, "ro": 200}
LEXICON_PAGES = 500  # English
SITES = {
    "en": (
        "hill-and-dale",
        "the-daily-kettle",
        "old-mill-notes",
        "plain-words",
        "harwick-post",
        "weekend-shed",
    ),
    "de": ("dorfblatt", "am-kachelofen", "stadt-und-fluss", "werkbank"),
    "fr": ("le-petit-canal", "cahiers-du-jardin", "gazette-valbonne", "autour-du-poele"),
    "ro": ("ziarul-vaii", "carte-si-paine", "poiana-alba", "drumuri-vechi"),
    "es": ("plaza-mayor",),
    "it": ("piazza-grande",),
    "pl": ("nasz-rynek",),
}
SHARDS = 8
WHOLE_FILE_SHARD = 5  # one gzip member for the whole file
PLAIN_SHARD = 7  # not compressed
CRAWL_DATE = "2019-04-26T00:00:00Z"
LONGEST_PAGE_CHARS = 190_000
REPEATED_PARAGRAPHS = 12  # of each language
REPEATED_SHARE = 0.15  # of the pages have one


def _date(dice: Dice, first_day: int, last_day: int) -> str:
    day, hour = dice.between(first_day, last_day), dice.between(0, 23)
    return f"2019-04-{day:02}T{hour:02}:{dice.between(0, 59):02}:{dice.between(0, 59):02}Z"


def _url(language: str, number: int, dice: Dice) -> str:
    scheme = dice.pick(("https://www.", "https://", "http://www.", "http://"))
    site = dice.pick(SITES[language])
    return f"{scheme}{site}.example/{language}/{dice.between(2009, 2019)}/page-{number:04}.html"


def _page(language: str, lines: list[str], number: int, dice: Dice) -> Page:
    url = _url(language, number, dice)
    return Page(url, _date(dice, 18, 22), ("\n".join(lines) + "\n").encode())


def _repeated(language: str) -> list[str]:
    """Return the paragraphs that stand on many pages of one language."""
    dice = Dice("crawl", "repeated", language)
    found: list[str] = []
    while len(found) < REPEATED_PARAGRAPHS:
        found += [line for line in page_paragraphs(language, dice) if line.count(". ") >= 3]
    return found[:REPEATED_PARAGRAPHS]


def _phrases(language: str, dice: Dice, held_out: frozenset[str]) -> str:
    """Return a paragraph of short sentences, none of which a task is scored on."""
    chosen: list[str] = []
    while len(chosen) < 5:
        sentence = parallel_sentences(dice)[language]
        if sentence not in held_out:
            chosen.append(sentence)
    return " ".join(chosen)


def _prose_page(language: str, number: int, held_out: frozenset[str], repeated: list[str]) -> Page:
    dice = Dice("crawl", "page", language, number)
    lines = page_paragraphs(language, dice)
    if dice.chance(0.3):
        lines = dirt.with_line(lines, _phrases(language, dice, held_out), dice)
    if dice.chance(REPEATED_SHARE):
        lines = dirt.with_line(lines, dice.pick(repeated), dice)
    if dice.chance(0.15):
        lines = dirt.with_marks(lines, dice)
    if dice.chance(0.6):
        lines = dirt.with_notices(lines, language, dice)
    lines = [page_title(language, dice), *lines]
    if dice.chance(0.65):
        lines = dirt.with_menu(lines, language, dice)
    return _page(language, lines, number, dice)


def _lexicon_pages() -> list[Page]:
    """Return pages about the words of the tasks' lexicons."""
    pages = []
    for number, (lexicon, side) in enumerate(page_topics(LEXICON_PAGES), start=4000):
        dice = Dice("crawl", "lexicon", number)
        lines = paragraphs(lexicon_sentences(lexicon, side, dice), dice)
        pages.append(_page("en", [page_title("en", dice), *lines], number, dice))
    return Dice("crawl", "lexicon", "order").shuffled(pages)


def _spoiled_pages(dice: Dice) -> list[Page]:
    """Return pages that the rules drop as a whole."""
    pages = []
    for number in range(2000, 2014):
        line = dice.pick(dirt.CODE_LINES)
        pages.append(
            _page("en", dirt.with_line(page_paragraphs("en", dice), line, dice), number, dice)
        )
    for number in range(2100, 2110):
        lines = dice.shuffled(dirt.PLACEHOLDERS)
        if dice.chance(0.6):
            lines = page_paragraphs("en", dice)[:4] + lines
        pages.append(_page("en", lines, number, dice))
    for language, first, count in (("en", 2200, 20), ("de", 2300, 6), ("fr", 2400, 6)):
        for number in range(first, first + count):
            line = dirt.oath(language, BOOKS[language].words, dice)
            lines = dirt.with_line(page_paragraphs(language, dice), line, dice)
            pages.append(_page(language, lines, number, dice))
    for language, (words, templates) in OTHER.items():
        for number in range(2500, 2508):
            sentences = [dice.fill(text, words) for text in dice.shuffled(templates)]
            pages.append(_page(language, paragraphs(sentences, dice), number, dice))
    for number in range(2600, 2610):
        menu = dirt.with_menu(dice.sample(dirt.SHORT_LINES["en"], 3), "en", dice)
        pages.append(_page("en", menu, number, dice))
    return pages


def _copies(pages: list[Page], dice: Dice) -> list[Page]:
    """Return later copies of some pages: another text, or another spelling of the address."""
    copies = []
    for place, page in enumerate(dice.sample(pages, 48)):
        language = page.url.split("example/")[1][:2]
        bare = page.url.split("://")[1].removeprefix("www.")
        lines = page.body.decode().splitlines()
        newer = [*lines[:-2], *page_paragraphs(language, dice)[:4]]
        url = (
            page.url,
            f"https://www.{bare}",
            f"http://{bare}?utm_source=mini&utm_medium=mail",
            f"https://{bare}/",
        )[place % 4]
        copies.append(Page(url, _date(dice, 23, 25), ("\n".join(newer) + "\n").encode()))
    return copies


def _odd_pages(dice: Dice) -> list[Page]:
    """Return one page for each thing that can be wrong with a record's bytes."""

    def lines() -> list[str]:
        return page_paragraphs("en", dice)[:9]

    def page(number: int, text: str) -> Page:
        return replace(_page("en", [], number, dice), body=text.encode())

    endless: list[str] = []
    while sum(map(len, endless)) <= LONGEST_PAGE_CHARS:
        endless += page_paragraphs("en", dice)
    broken = "\n".join(lines()).encode()
    broken = broken[:200] + b" caf\xe9 \xff\xfe " + broken[200:]
    return [
        page(3000, "\n".join(endless)),
        replace(page(3001, ""), body=broken),
        replace(page(3002, "\n".join(lines())), length_error=25),
        page(3003, ""),
        page(3004, "\n".join([*lines(), "WARC/1.0", *lines()])),
        page(
            3005,
            "\n".join(["A record begins with the words WARC/1.0 in its first line.", *lines()]),
        ),
        page(3006, "\r\n".join(lines())),
        page(3007, "\u2028".join(lines())),
        page(3008, "\r".join(lines())),
        page(3009, "\u0085".join(lines())),
        page(3010, "\n".join(dirt.with_line(lines(), dirt.long_word_line(dice), dice))),
        page(3011, "\n".join(["\ufeff" + line + "\u00a0" for line in lines()])),
    ]


def _shards(held_out: frozenset[str]) -> list[list[Page]]:
    """Return the pages of every file; later copies are anywhere."""
    prose = [
        _prose_page(language, number, held_out, repeated)
        for language, count in PAGES.items()
        for repeated in (_repeated(language),)
        for number in range(count)
    ]
    dice = Dice("crawl", "rest")
    pages = prose + _copies(prose, dice) + _spoiled_pages(dice) + _odd_pages(dice)
    mixed = dice.shuffled(pages)
    # Behind the others, whose records keep their numbers.
    lexicon_pages = _lexicon_pages()
    shards = [mixed[shard::SHARDS] + lexicon_pages[shard::SHARDS] for shard in range(SHARDS)]
    short = page_paragraphs("en", dice)[:9]
    too_short = replace(_page("en", short, 3012, dice), length_error=-40)
    shards[PLAIN_SHARD].insert(20, too_short)
    return shards


def crawl_files(held_out: frozenset[str]) -> dict[str, bytes]:
    """Return path -> bytes of every WET file and of the lists that go with them.

    Args:
        held_out: sentences that must not be in the crawl, because a task is scored on them.
    """
    files = {path: text.encode() for path, text in dirt.list_files().items()}
    shards = _shards(held_out)
    addresses = [page.url for pages in shards for page in pages]
    files |= {path: text.encode() for path, text in selection_files(addresses).items()}
    for shard, pages in enumerate(shards):
        plain = shard == PLAIN_SHARD
        name = f"MINI-2019-18-{shard:05}.warc.wet{'' if plain else '.gz'}"
        records = [warcinfo(name, CRAWL_DATE), *(conversion(page) for page in pages)]
        if plain:
            data = b"".join(records)
        elif shard == WHOLE_FILE_SHARD:
            data = gzip_member(b"".join(records))
        else:
            data = b"".join(gzip_member(record) for record in records)
        files[f"crawl/{name}"] = data
    return files
