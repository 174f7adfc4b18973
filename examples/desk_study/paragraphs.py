"""Paragraphs of HTML, XML, manual pages and collections of quotations; which of them are prose."""

import re
from collections.abc import Callable, Mapping
from html.parser import HTMLParser

BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "br", "caption", "center", "dd", "div",
    "dl", "dt", "entry", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5",
    "h6", "header", "hr", "item", "li", "main", "note", "ol", "p", "para", "page", "pre", "row",
    "section", "simpara", "steps", "table", "tbody", "td", "term", "th", "thead", "title", "tr",
    "ul", "listitem", "itemizedlist",
})  # fmt: skip
PROSE_BLOCKS = frozenset({
    "p", "li", "dd", "div", "td", "blockquote", "para", "simpara", "entry", "item",
})  # fmt: skip
SKIPPED = frozenset({
    "script", "style", "nav", "pre", "head", "select", "button", "textarea", "svg", "math",
    "code_block", "screen", "programlisting", "info", "footer", "copyright", "legalnotice",
    "revhistory", "indexterm",
})  # fmt: skip
# Elements of navigation, contents, indexes and licences, by a word of their class or id.
SKIPPED_CLASSES = re.compile(
    r"nav|sidebar|sphinxsidebar|toc|contents|footer|breadcrumb|menu|legalnotice|copyright|"
    r"index(?:entry|div|table)?|headerlink|highlight|related|searchbox|authorgroup|revhistory"
)
VOID = frozenset({
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source",
    "track", "wbr",
})  # fmt: skip
MAX_LINKED_PART = 0.5  # of the characters; above, a paragraph is a list of links


class _Reader(HTMLParser):
    """Collects the text of prose blocks."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.paragraphs: list[str] = []
        self._text: list[str] = []
        self._block = "p"
        self._skipped = ""  # the element whose content is skipped
        self._depth = 0  # of elements of that name within it
        self._in_link = False
        self._linked_chars = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._skipped:
            self._depth += tag == self._skipped
            return
        if tag in BLOCKS:
            self._end_block(tag)
        if tag not in VOID and (tag in SKIPPED or _is_furniture(tag, attrs)):
            self._skipped, self._depth = tag, 1
        self._in_link = tag == "a" or (self._in_link and tag not in BLOCKS)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if not self._skipped and tag in BLOCKS:
            self._end_block(self._block)

    def handle_endtag(self, tag: str) -> None:
        if self._skipped:
            self._depth -= tag == self._skipped
            if not self._depth:
                self._skipped = ""
            return
        if tag in BLOCKS:
            self._end_block("p")
        self._in_link = self._in_link and tag != "a"

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self._text.append(data)
            self._linked_chars += len(data) if self._in_link else 0

    def close(self) -> None:
        super().close()
        self._end_block("p")

    def _end_block(self, following: str) -> None:
        text = " ".join("".join(self._text).replace("¶", " ").split())
        if self._block in PROSE_BLOCKS and self._linked_chars <= MAX_LINKED_PART * len(text):
            self.paragraphs.append(text)
        self._text, self._linked_chars, self._block = [], 0, following


def _is_furniture(tag: str, attrs: list[tuple[str, str | None]]) -> bool:
    if tag in ("html", "body", "main", "p", "li", "a", "span", "em", "code"):
        return False
    return any(
        SKIPPED_CLASSES.match(word)
        for name, value in attrs
        if name in ("class", "id", "role") and value
        for word in value.lower().split()
    )


def html_paragraphs(text: str) -> list[str]:
    """Return the paragraphs of HTML, DocBook or Mallard without code and navigation."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    return reader.paragraphs


_FONT = re.compile(r"\\f(?:\[[^\]]*\]|\(..|.)|\\[&/,:|^%]|\\s[+-]?\d|\\m\[[^\]]*\]")
_CHARACTERS = {
    r"\-": "-", r"\e": "\\", r"\(aq": "'", r"\(dq": '"', r"\(em": "—", r"\(en": "–",
    r"\(bu": "•", r"\(lq": "“", r"\(rq": "”", r"\(oq": "‘", r"\(cq": "’", r"\(co": "©",
    r"\(ga": "`", r"\(ha": "^", r"\(ti": "~", r"\(rs": "\\", r"\ ": " ", r"\~": " ",
    r"\0": " ", r"\'": "'", r"\`": "`",
}  # fmt: skip
_FONT_MACRO = re.compile(r"\.\s*(?:BI|BR|IB|IR|RB|RI|B|I|R|SM|SB)\s+(.*)")
_ALTERNATING = re.compile(r"\.\s*(?:BI|BR|IB|IR|RB|RI)\b")
_ARGUMENT = re.compile(r'"([^"]*)"|(\S+)')
_VERBATIM = {".nf": ".fi", ".EX": ".EE", ".TS": ".TE", ".EQ": ".EN", ".de": "..", ".ig": ".."}
_OMITTED_SECTIONS = re.compile(
    r"NAME|SYNOPSIS|SEE ALSO|COPYRIGHT|AUTHORS?|COLOPHON|LIBRARY|ÜBERSETZUNG|TRADUCTION|TRADUCERE|"
    r"BEZEICHNUNG|ÜBERSICHT|SIEHE AUCH|VOIR AUSSI|NOM|DROITS|AUTEURS?|AUTOR|NUME|CONSULTAȚI|"
    r"REZUMAT|LIZENZ|LICENCE|LICENSE|BIBLIOTH"
)


def man_paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a manual page in the macros of man(7).

    Fonts are dropped; tables, examples and the sections of names, synopses, authors, licences
    and references are left out.
    """
    paragraphs: list[str] = []
    words: list[str] = []
    until, is_omitted = "", False
    for line in text.splitlines():
        macro = line.split(" ", 1)[0]
        if until:
            until = "" if macro == until else until
            continue
        if macro in _VERBATIM:
            until = _VERBATIM[macro]
        if font := _FONT_MACRO.match(line):
            arguments = [quoted or bare for quoted, bare in _ARGUMENT.findall(font[1])]
            words.append(("" if _ALTERNATING.match(line) else " ").join(arguments))
        elif not line.strip() or line[0] in ".'":
            if not line.startswith(('.\\"', "'\\\"")) and words:
                if not is_omitted:
                    paragraphs.append(_plain(" ".join(words)))
                words = []
            if macro in (".SH", ".Sh"):
                is_omitted = bool(_OMITTED_SECTIONS.match(_plain(line[3:]).strip(' "').upper()))
        else:
            words.append(line)
    if words and not is_omitted:
        paragraphs.append(_plain(" ".join(words)))
    return paragraphs


def _plain(text: str) -> str:
    text = _FONT.sub("", text)
    for escape, character in _CHARACTERS.items():
        text = text.replace(escape, character)
    text = re.sub(r"\\\[u([0-9A-F]{4,5})\]", lambda match: chr(int(match[1], 16)), text)
    return " ".join(text.split())


def quotation_paragraphs(text: str) -> list[str]:
    """Return the entries of a file of fortune(6), which lines with one ``%`` separate."""
    return [" ".join(entry.split()) for entry in re.split(r"(?m)^%$", text)]


FORMATS: Mapping[str, Callable[[str], list[str]]] = {
    "html": html_paragraphs,
    "man": man_paragraphs,
    "quotations": quotation_paragraphs,
}

MIN_WORDS = 8
MIN_LETTERS_PART = 0.75  # of the characters other than spaces; below, it is a table or code
_END = re.compile(r"[.?!…][\"'”’»«“)\]]*$")
_LETTER = re.compile(r"[^\W\d_]")
_LICENCE = re.compile(
    r"copyright ©|©|\(c\) \d{4}|all rights reserved|permission is (?:hereby )?granted|"
    r"free software foundation|free documentation license|licensed under|as published by the|"
    r"without any warranty|terms of the gnu|creative commons|apache license|droit d'auteur|"
    r"urheberrecht|mozilla public|lizenziert unter|licence publique|licența publică",
    re.IGNORECASE,
)


def is_prose(paragraph: str) -> bool:
    """Return whether a paragraph is a sentence or more, and not a notice of a licence."""
    if len(paragraph.split()) < MIN_WORDS or not _END.search(paragraph):
        return False
    characters = len(paragraph.replace(" ", ""))
    letters = len(_LETTER.findall(paragraph))
    return letters >= MIN_LETTERS_PART * characters and not _LICENCE.search(paragraph)
