"""T5 rebuilt from the crawl up, with a record behind every number."""

__version__ = "0.1.0"
