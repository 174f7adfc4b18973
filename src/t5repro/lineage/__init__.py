"""Lineage: jobs, their code (`sources`) and artifacts, and the questions of an auditor.

Everything is read from files that a run leaves behind. `store` opens a state of a checkout (working
tree, copy or git revision) with `git`, `dvc_lock` and `dvc_cache`; `hashes` hashes its files;
`graph` joins the manifests of its jobs by SHA-256. The questions build on these: `trace`
(provenance), `impact` (dependents), `verify` and `verify_revision` (integrity, as `findings`), and
`diff` (first divergence of two runs). `tolerance` has all tolerances, and `spread`
reads the measured spread of a run.

`record` writes one record per job, with its `environment`, its code (`sources`) and `redaction`;
`run_lock` keeps two runs in one checkout apart.

Neither Snakemake nor DVC is imported here, except by `dvc_cache` to ask DVC for its cache folder.
Anything that runs or plans with these tools belongs to `t5repro.versions`.
"""
