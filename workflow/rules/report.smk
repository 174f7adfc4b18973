"""
The report: scores of all experiments compared with each other and with the paper.

READS     results/{run}/evaluate_score/{node}/scores.json   every experiment
          results/{run}/evaluate_score/{node}/manifest.json names the predictions
          results/{run}/pretrain|finetune/{node}/history.csv
          results/{run}/evaluate_predict/{node}/{task}.jsonl  answers of the last step
          results/{run}/c4/{node}/manifest.json             pages dropped by each rule, if an
                                                            experiment reads the corpus
          results/{run}/c4/{node}/{language}-train-00000-of-{n}.parquet   first pages, likewise
          results/{run}/tokens/{node}/manifest.json         tokens of the held-out text, likewise
          results/{run}/vocab/{node}/sentencepiece.model    and its list of pieces
          results/{run}/**/manifest.json                    of every job: the lineage page
WRITES    results/{run}/report/report.html                  self-contained
          results/{run}/report/trace.html                   lineage page: scores to raw files
          results/{run}/report/corpus.html                  corrupted rows, pages, vocabulary
          results/{run}/report/answers/{task}.html          right and wrong answers
          results/{run}/report/scores.csv
          results/{run}/report/{experiment}.metrics.json    scores and last losses, for DVC
SETTINGS  all: the report lists them
CODE      src/t5repro/report/page.py
"""

SCORES = by_experiment("evaluate_score", "scores.json")
SCORE_MANIFESTS = by_experiment("evaluate_score", "manifest.json")
PRETRAIN_HISTORIES = by_experiment("pretrain", "history.csv")
FINETUNE_HISTORIES = by_experiment("finetune", "history.csv")
CORPORA = {
    name: path
    for name, path in by_experiment("c4", "manifest.json").items()
    if settings_at(name).reads_corpus
}
TOKENS = {
    name: path
    for name, path in by_experiment("tokens", "manifest.json").items()
    if name in CORPORA
}
# The corpus page shows the first pages of each language; it reads no other file of the corpus.
PAGES = {
    name: [path for path in files_at("c4", name) if "-train-00000-of-" in path]
    for name in CORPORA
}
VOCABULARIES = by_experiment("vocab", "sentencepiece.model")
PIECES = by_experiment("vocab", "sentencepiece.vocab")
PREDICTIONS = {name: last_predictions(name) for name in EXPERIMENTS}
ANSWERS = {
    Path(path).stem: f"results/{RUN}/report/answers/{Path(path).stem}.html"
    for paths in PREDICTIONS.values()
    for path in paths
}
METRICS = {name: f"results/{RUN}/report/{name}.metrics.json" for name in EXPERIMENTS}


def upstream_manifests(wildcards):
    """Return the manifest of every job but the report; `stages.smk` lists them."""
    return sorted(
        {
            path
            for name, paths in STAGE_TARGETS.items()
            if name != "stage_report"
            for path in paths
        }
    )


rule report:
    """Compare the experiments with each other and with the paper."""
    input:
        scores=list(SCORES.values()),
        predicted=list(SCORE_MANIFESTS.values()),
        predictions=sorted({path for paths in PREDICTIONS.values() for path in paths}),
        pretrain=list(PRETRAIN_HISTORIES.values()),
        finetune=list(FINETUNE_HISTORIES.values()),
        corpus=list(CORPORA.values()),
        tokens=list(TOKENS.values()),
        pages=sorted({path for paths in PAGES.values() for path in paths}),
        vocabularies=list(VOCABULARIES.values()),
        pieces=list(PIECES.values()),
        manifests=upstream_manifests,
        code=code_of("report"),
    output:
        html=report("<results>/report/report.html", category="Report"),
        trace=report("<results>/report/trace.html", category="Report"),
        corpus_page=report("<results>/report/corpus.html", category="Report"),
        answers=[f"<results>/report/answers/{task}.html" for task in ANSWERS],
        csv=report("<results>/report/scores.csv", category="Scores"),
        metrics=[f"<results>/report/{name}.metrics.json" for name in EXPERIMENTS],
        manifest="<results>/report/manifest.json",
    log:
        "<logs>/report.log",
    benchmark:
        "<logs>/report.tsv"
    resources:
        mem_mb=memory(2000),
        runtime=60,
    params:
        settings=settings_of("report"),
        scores=pairs(SCORES),
        pretrain=pairs(PRETRAIN_HISTORIES),
        finetune=pairs(FINETUNE_HISTORIES),
        corpus=["--corpus", *pairs(CORPORA)] if CORPORA else [],
        tokens=["--tokens", *pairs(TOKENS)] if TOKENS else [],
        metrics=pairs(METRICS),
        predictions=[
            f"{name}={path}" for name, paths in PREDICTIONS.items() for path in paths
        ],
        answers=pairs(ANSWERS),
        pages=[f"{name}={path}" for name, paths in PAGES.items() for path in paths],
        vocabularies=pairs(VOCABULARIES),
    shell:
        "t5repro report"
        " --settings {params.settings:q}"
        " --scores {params.scores:q}"
        " --pretrain-history {params.pretrain:q}"
        " --finetune-history {params.finetune:q}"
        " {params.corpus:q}"
        " {params.tokens:q}"
        " --html {output.html:q}"
        " --trace {output.trace:q}"
        " --predictions {params.predictions:q}"
        " --answers {params.answers:q}"
        " --pages {params.pages:q}"
        " --vocabularies {params.vocabularies:q}"
        " --corpus-page {output.corpus_page:q}"
        " --csv {output.csv:q}"
        " --metrics {params.metrics:q}"
        " --manifest {output.manifest:q}"
        " --log {log:q}"
