"""C4: from the WET files of Common Crawl to a cleaned, deduplicated corpus (paper section 2.2).

Each rule has a module of its name, and that module imports all code of the rule and nothing else:

- `punkt` (rule `c4_punkt`) trains sentence splitters on a sample of the crawl;
- `clean` (rule `c4_clean`) reads the pages of one shard, applies the rules for lines and pages,
  and hashes the units of text that deduplication compares;
- `deduplicate` (rule `c4_dedup`) finds duplicate pages and duplicate text by these hashes;
- `write` (rule `c4`) removes the duplicates, filters by language and bad words, and writes Parquet.

`wet` reads WET files, `text` contains the rules for the text of a page, `dedup` the comparison of
hashes and the removal of text, `spark` runs the rules `c4_clean`, `c4_dedup` and `c4` on a cluster.
`tables` defines the files between the rules and `reasons` every reason for which a page or a line
is dropped; `keys` has the hashes, `page_filter` and `page_counts` the last rule's decisions.
"""
