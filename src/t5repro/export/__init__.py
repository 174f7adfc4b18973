"""Documents of provenance standards, written from manifests and records.

`facts` reads a run; `prov`, `ro_crate`, `in_toto`, `openlineage`, `croissant` and `cyclonedx` write
one standard each; `commands` is called by the command line. `lineage.keys` makes and reads keys.
Their libraries are the extra `export` and are imported only when a document is written.
"""
