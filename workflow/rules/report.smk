"""
The report: experiments beside each other, as a page and as a table.

READS     results/{run}/evaluate_score/{node}/scores.json   every experiment
          results/{run}/evaluate_score/{node}/manifest.json names the predictions
          results/{run}/pretrain|finetune/{node}/history.csv
          results/{run}/c4/{node}/manifest.json             what the corpus rules dropped
          results/{run}/**/manifest.json                    of every job before: the way back
WRITES    results/{run}/report/report.html                  self-contained
          results/{run}/report/trace.html                   from the scores to the raw files
          results/{run}/report/scores.csv
SETTINGS  all: the report shows them
CODE      src/t5repro/evaluate/
"""

SCORES = by_experiment("evaluate_score", "scores.json")
SCORE_MANIFESTS = by_experiment("evaluate_score", "manifest.json")
PRETRAIN_HISTORIES = by_experiment("pretrain", "history.csv")
FINETUNE_HISTORIES = by_experiment("finetune", "history.csv")
CORPORA = by_experiment("c4", "manifest.json")


def manifests_behind(wildcards):
    """Return the manifest of every job before the report; `stages.smk` lists them."""
    return sorted(
        {
            path
            for name, paths in STAGE_TARGETS.items()
            if name != "stage_report"
            for path in paths
        }
    )


rule report:
    """Set the experiments beside each other and beside the paper."""
    input:
        scores=list(SCORES.values()),
        predicted=list(SCORE_MANIFESTS.values()),
        pretrain=list(PRETRAIN_HISTORIES.values()),
        finetune=list(FINETUNE_HISTORIES.values()),
        corpus=list(CORPORA.values()),
        behind=manifests_behind,
        code=code_of("report"),
    output:
        html="results/{run}/report/report.html",
        trace="results/{run}/report/trace.html",
        csv="results/{run}/report/scores.csv",
        manifest="results/{run}/report/manifest.json",
    log:
        "logs/{run}/report.log",
    params:
        settings=settings_of("report"),
        scores=pairs(SCORES),
        pretrain=pairs(PRETRAIN_HISTORIES),
        finetune=pairs(FINETUNE_HISTORIES),
        corpus=pairs(CORPORA),
    shell:
        "t5repro report"
        " --settings {params.settings:q}"
        " --scores {params.scores:q}"
        " --pretrain-history {params.pretrain:q}"
        " --finetune-history {params.finetune:q}"
        " --corpus {params.corpus:q}"
        " --html {output.html:q}"
        " --trace {output.trace:q}"
        " --csv {output.csv:q}"
        " --manifest {output.manifest:q}"
        " --log {log:q}"
