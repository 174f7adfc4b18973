"""Removal of repeated pages and text."""
