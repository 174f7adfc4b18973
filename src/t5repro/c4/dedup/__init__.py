"""Removal of duplicate pages and duplicate text.

Cleaning hashes the *units* of text that are compared, lines or three-sentence spans (`spans`);
deduplication collects the hashes (`key_rows`, `spill`), decides which copies to remove
(`duplicates`) and records it page by page (`removals`); writing removes the text (`shorten`).
"""
