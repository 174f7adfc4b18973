"""The user's own text instead of a crawl: rows of Parquet, JSON lines and plain text.

- `read` is the rule `corpus`; it writes rows of the format of `c4_clean`, so every later rule and
  every question of the audit treats them as pages;
- `rows` reads the files and refuses damaged ones;
- `redact` deletes the text of withdrawn rows from a file.
"""
