"""Codes of languages, as settings and rows of own text name them."""

import difflib
import re
from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

from t5repro.errors import nearest

PATTERN = "[a-z]{2,3}(-[a-z]{2})?"
# ISO 639-1, and the older codes `in`, `iw`, `ji`, `jw` and `sh`, which released corpora still have.
_TWO_LETTERS = """
    aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da
    de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz
    ia id ie ig ii ik in io is it iu iw ja ji jv jw ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la
    lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om
    or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg sh si sk sl sm sn so sq sr ss st su sv sw
    ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu
"""
# Names of frequent languages of the crawl, or their own names -> code, for messages.
NAMES = {
    "arabic": "ar", "bulgarian": "bg", "chinese": "zh", "czech": "cs", "danish": "da",
    "dutch": "nl", "english": "en", "finnish": "fi", "french": "fr", "german": "de",
    "greek": "el", "hebrew": "he", "hindi": "hi", "hungarian": "hu", "indonesian": "id",
    "italian": "it", "japanese": "ja", "korean": "ko", "norwegian": "no", "persian": "fa",
    "polish": "pl", "portuguese": "pt", "romanian": "ro", "russian": "ru", "spanish": "es",
    "deutsch": "de", "español": "es", "français": "fr", "italiano": "it", "română": "ro",
    "swedish": "sv", "thai": "th", "turkish": "tr", "ukrainian": "uk", "vietnamese": "vi",
}  # fmt: skip
TWO_LETTERS = frozenset(_TWO_LETTERS.split())


def is_language(code: str) -> bool:
    """Return whether a text is a code: two known letters or any three, and perhaps a region."""
    language = code.partition("-")[0]
    is_code = len(language) == 3 or language in TWO_LETTERS
    return bool(re.fullmatch(PATTERN, code)) and is_code


def check_language(code: str) -> str:
    """Return a code of a language.

    Raises:
        ValueError: it is none.
    """
    if is_language(code):
        return code
    raise ValueError(
        "a language is a code of ISO 639 in small letters, such as 'en' or 'ceb', or one with a "
        f"region, such as 'zh-cn'{nearest_code(code)}"
    )


def nearest_code(code: str) -> str:
    """Return the end of a message about an unknown code: ``; nearest: 'en'``, or nothing."""
    name = code.strip().casefold()
    if name in NAMES:
        return f"; nearest: {NAMES[name]!r}"
    language, separator, region = name.replace("_", "-").partition("-")
    if is_language(corrected := f"{language}{separator}{region}"):
        return f"; nearest: {corrected!r}"
    # Names before codes: `english` has no code of two letters among its close matches.
    close = difflib.get_close_matches(language, NAMES, n=1, cutoff=0.75)
    if close:
        return f"; nearest: {NAMES[close[0]]!r}"
    return nearest(language, sorted(TWO_LETTERS)) if len(language) > 1 else ""


Language = Annotated[
    str,
    AfterValidator(check_language),
    WithJsonSchema({"type": "string", "pattern": f"^{PATTERN}$"}),
]
LanguageOrNone = Annotated[
    str,
    AfterValidator(lambda code: code and check_language(code)),
    WithJsonSchema({"type": "string", "pattern": f"^({PATTERN})?$"}),
]
