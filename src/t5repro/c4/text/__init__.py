"""The rules for the text of a page: lines, sentences, language, bad words.

`rules` defines which lines and pages are dropped, `fast_rules` computes the
same for many pages at once.
"""
