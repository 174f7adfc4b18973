"""Settings of how the crawl is read: which addresses, and what one record may need."""

from t5repro.config.field import Section, setting


class SelectSettings(Section):
    """Which addresses are read at all; the raw files are listed in `data.sources`."""

    domains: str = setting(
        "",
        "raw file with the domains whose pages are read, as JSON: domain -> list of its allowed "
        "subdomains, or anything else for all of them; empty: every domain",
    )
    urls: str = setting(
        "", "raw file with the addresses whose pages are read, one a line; empty: every address"
    )


class LimitsSettings(Section):
    """What one record of the crawl may need; bounds the memory of a cleaning job."""

    record_chars: int = setting(
        4_194_304, "a longer record is dropped as `record_too_large`; characters", ge=1000
    )
    member_bytes: int = setting(
        16_777_216,
        "a gzip member up to this, uncompressed, is used only when its checksum is right; a "
        "longer one is read as a stream; bytes",
        ge=1000,
    )
    gzip_expansion: int = setting(
        200,
        "a member longer than that which grows more than this is dropped as `gzip_bomb`; "
        "uncompressed bytes per compressed byte",
        ge=2,
    )
