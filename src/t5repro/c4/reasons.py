"""Every reason for which a page or a line is dropped, grouped by the step that applies it.

`clean_page` in `text/rules.py` has the order of the tests. The names are part of the columns and
counters of the manifests and of the report.
"""

KEPT = "kept"  # counted like a reason

# Reading a record: the first four are also faults of the crawl (`wet.faults`).
NO_URL = "no_url"
NO_TIMESTAMP = "no_timestamp"
INVALID_UTF8 = "invalid_utf8"
RECORD_TOO_LARGE = "record_too_large"
NO_CONTENT = "no_content"
TOO_LONG = "too_long"
WITHDRAWN = "withdrawn"  # withdrawn by its owner; the page is counted and is in no sample
RECORD_REASONS = (NO_URL, NO_TIMESTAMP, INVALID_UTF8, RECORD_TOO_LARGE, NO_CONTENT, TOO_LONG)

# The lists of `c4.select`.
DOMAIN_NOT_LISTED = "domain_not_listed"
URL_NOT_LISTED = "url_not_listed"
READ_REASONS = (*RECORD_REASONS, DOMAIN_NOT_LISTED, URL_NOT_LISTED)

# A newer copy of the page exists.
DUPLICATE_URL = "duplicate_url"

# Signals of a page (D-060). `c4.signals.drop` drops it for one of the first five, for the first of
# them in this order; mentions are counted only.
TDM_RESERVED = "tdm_reserved"
USAGE_REFUSED = "usage_refused"
NOAI = "noai"
NOINDEX = "noindex"
UNKNOWN = "unknown"  # the page has no record in its WAT file
MENTIONS_LICENCE_LINK = "mentions_licence_link"
MENTIONS_CREATIVE_COMMONS = "mentions_creative_commons"
MENTIONS_RIGHTS_RESERVED = "mentions_all_rights_reserved"
SIGNALS = (
    TDM_RESERVED,
    USAGE_REFUSED,
    NOAI,
    NOINDEX,
    UNKNOWN,
    MENTIONS_LICENCE_LINK,
    MENTIONS_CREATIVE_COMMONS,
    MENTIONS_RIGHTS_RESERVED,
)
SIGNAL_REASONS = {signal: f"signal_{signal}" for signal in SIGNALS[:5]}

# Cleaning: lines.
LONG_WORD = "long_word"
NO_TERMINAL_PUNCTUATION = "no_terminal_punctuation"
FEW_WORDS = "few_words"
JAVASCRIPT = "javascript"
POLICY = "policy"
LINE_REASONS = (LONG_WORD, NO_TERMINAL_PUNCTUATION, FEW_WORDS, JAVASCRIPT, POLICY)

# Cleaning: pages.
LOREM_IPSUM = "lorem_ipsum"
CURLY_BRACKET = "curly_bracket"
BAD_WORD_IN_LINE = "bad_word_in_line"
FEW_SENTENCES = "few_sentences"
FEW_PARAGRAPHS = "few_paragraphs"
PAGE_REASONS = (FEW_PARAGRAPHS, LOREM_IPSUM, CURLY_BRACKET, BAD_WORD_IN_LINE, FEW_SENTENCES)

# Removal of duplicate text: units of text, then pages that became too short.
REPEATED_TEXT = "repeated_text"
NOTHING_LEFT = "nothing_left"
FEW_SENTENCES_LEFT = "few_sentences_left"
SHORTENED_REASONS = (NOTHING_LEFT, FEW_SENTENCES_LEFT)

# Language and bad words.
UNDETECTED = "language_undetected"
UNCERTAIN = "language_uncertain"
NOT_WANTED = "language_not_wanted"
LANGUAGE_REASONS = (UNDETECTED, UNCERTAIN, NOT_WANTED)
BAD_WORD = "bad_word"
