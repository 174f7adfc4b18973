"""Versions: keeps Snakemake, which runs the graph, and DVC, which versions files, in agreement.

This is the only package that runs these tools or reads their internals. `snakemake_run` is what
the Snakefile calls; `snakemake_graph` groups the jobs of a run into stages; `dvc_pipeline` writes
`dvc.yaml` from them. After a run, `seal` writes the stages that are proven by records (`proof`)
into `dvc.lock`; after a checkout or pull, `rehydrate` writes Snakemake's metadata from the lock.
`certificate` compares results with a committed lock, `other_engine` repeats a run on the other
engine, `rebuild` builds jobs again in a clone, `raw_data_check` compares the raw files with
`data.dvc`, `remote_storage` lets jobs run on machines that share only a bucket, and `sigterm` lets
SIGTERM end a run at any moment. See docs/versions.md.
"""
