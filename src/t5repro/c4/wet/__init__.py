"""Read the pages of WET files."""
