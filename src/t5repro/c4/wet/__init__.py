"""Read the pages of WET files.

`reader` yields the pages of a job and counts the others; below it `pages` parses records,
`warc_records` finds them in the bytes of the file, and `gzip_members` decompresses these.
`faults` counts damage, `url_filter` applies `c4.select`, `redact` deletes withdrawn pages.
"""
