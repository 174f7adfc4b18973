"""The rules for the text of a page."""
