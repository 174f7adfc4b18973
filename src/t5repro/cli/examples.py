"""Examples at the end of each command's help; after ``make demo`` they run in the checkout.

Exceptions need something of the user's: a signing key, a file of rows, predictions of test sets.
`weights import` reads the folder that the example of `weights export` writes.
"""

TRAINED = "results/demo/finetune/baseline/manifest.json"
VOCABULARY = "results/demo/vocab/baseline/sentencepiece.model"
PAGE = "http://www.hill-and-dale.example/en/2016/page-0429.html"
EXAMPLES = {
    "init": ("t5repro init my_project",),
    "doctor": ("t5repro doctor", "t5repro doctor --configfile configs/demo.yaml"),
    "show": ("t5repro show results/demo",),
    "cost": ("t5repro cost results/demo", "t5repro cost results/demo --html exports/cost.html"),
    "predict": (
        't5repro predict results/demo "sst2 sentence: a joy"',
        "t5repro predict results/demo --file results/demo/tasks/glue_sst2/validation.jsonl --json",
    ),
    "batches": (
        "t5repro batches results/demo/pretrain/baseline/manifest.json --step 3",
        "t5repro batches results/demo/pretrain/baseline/manifest.json --document 67",
    ),
    "config show": ("t5repro config show configs/demo.yaml",),
    "config presets": ("t5repro config presets",),
    "config validate": ("t5repro config validate configs/demo.yaml",),
    "config generate": ("t5repro config generate",),
    "config check": ("t5repro config check",),
    "tasks new": (
        "t5repro tasks new rows.csv --from results/demo",
        "t5repro tasks new rows.csv --from results/demo --target label --out rows.yaml",
    ),
    "tasks submit": (
        "t5repro tasks submit glue --predictions results/RUN/evaluate_predict/NODE \\\n"
        "    --output glue.zip",
    ),
    "tasks list": ("t5repro tasks list", "t5repro tasks list configs/demo.yaml"),
    "tasks sources": ("t5repro tasks sources glue_sst2 squad",),
    "paper rows": ("t5repro paper rows",),
    "estimate": (
        "t5repro estimate",
        "t5repro estimate --configfile configs/base.yaml configs/paper_rows.yaml \\\n"
        "    --machine v5e-8 --table 6",
    ),
    "crawl plan": ("t5repro crawl plan configs/base.yaml --paths wet.paths --sample 0",),
    "trace": (
        "t5repro trace 'results/demo/evaluate_score/baseline/scores.json#glue_sst2'",
        f"t5repro trace {PAGE} --steps",
    ),
    "contamination": (
        "t5repro contamination results/demo/evaluate_score/baseline/scores.json",
        "t5repro contamination results/demo/evaluate_score/baseline/scores.json \\\n"
        "    --method gpt3 palm",
    ),
    "pages": (
        "t5repro pages 'results/demo/evaluate_score/baseline/scores.json#glue_sst2'",
        "t5repro pages results/demo/evaluate_score/baseline/scores.json --csv exports/pages.csv",
    ),
    "verify": ("t5repro verify", "t5repro verify --study studies/systems"),
    "impact": ("t5repro impact data/crawl/MINI-2019-18-00000.warc.wet.gz",),
    "withdraw": (f"t5repro withdraw {PAGE} --reason 'asked by its author' --dry-run",),
    "diff": ("t5repro diff HEAD .",),
    "rebuild": ("t5repro rebuild vocab", "t5repro rebuild --sample 2 --seed 1"),
    "runs": (
        "t5repro runs glue_sst2.accuracy:gt:60 pretrain.objective:eq:replace_spans --sort flops",
        "t5repro runs --html exports/runs.html",
    ),
    "export": (
        "t5repro export --format prov --output exports/prov.json",
        "t5repro export --format cyclonedx --output exports/cyclonedx.json",
    ),
    "dvc generate": ("t5repro dvc generate",),
    "dvc check": ("t5repro dvc check",),
    "dvc settings": ("t5repro dvc settings",),
    "dvc dag": ("t5repro dvc dag",),
    "seal": ("t5repro seal",),
    "sign": ("t5repro sign --key ~/.config/t5repro/key.pem",),
    "certificate": (
        "t5repro certificate",
        "t5repro certificate --engine jax --node pretrain/baseline",
    ),
    "dvc rehydrate": ("t5repro dvc rehydrate",),
    "dvc raw": ("t5repro dvc raw",),
    "weights import": ("t5repro weights import exports/hf --folder exports/own",),
    "weights export": (
        f"t5repro weights export --form huggingface --weights {TRAINED} \\\n"
        f"    --vocabulary {VOCABULARY} --folder exports/hf",
    ),
    "weights saved-model": (
        f"t5repro weights saved-model --settings configs/demo.yaml --weights {TRAINED} \\\n"
        f"    --vocabulary {VOCABULARY} --folder exports/server/1",
    ),
    "weights publish": (
        "t5repro weights publish results/demo --folder exports/demo",
        "t5repro weights publish results/demo --experiment baseline_seed_1 --folder exports/seed_1",
    ),
    "weights verify": ("t5repro weights verify exports/demo --public-key model.pub",),
}


def epilog(command: str) -> str | None:
    """Return the end of a command's help; None for the commands of the rules."""
    lines = EXAMPLES.get(command)
    if lines is None:
        return None
    title = "example:" if len(lines) == 1 else "examples:"
    return "\n".join([title, *("  " + line.replace("\n", "\n  ") for line in lines)])
