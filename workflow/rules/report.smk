"""The report: scores of all experiments compared with each other and with the paper.

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
          results/{run}/contamination/{node}/rows_in_corpus.json   if the corpus is searched
WRITES    results/{run}/report/report.html                  self-contained
          results/{run}/report/trace.html                   lineage page: scores to raw files
          results/{run}/report/corpus.html                  corrupted rows, pages, vocabulary
          results/{run}/report/contamination.html           evaluated rows in the corpus, likewise
          results/{run}/report/answers/{task}.html          right and wrong answers
          results/{run}/report/scores.csv
          results/{run}/report/{experiment}.metrics.json    scores and last losses, for DVC
SETTINGS  all: the report lists them
CODE      src/t5repro/report/page.py
"""

OUTPUTS = outputs_of("report")


rule report:
    """Compare the experiments with each other and with the paper."""
    input:
        inputs_of("report"),
        code=code_of("report"),
    output:
        html=report(OUTPUTS["html"], category="Report"),
        trace=report(OUTPUTS["trace"], category="Report"),
        corpus_page=report(OUTPUTS["corpus_page"], category="Report"),
        contamination_page=OUTPUTS["contamination_page"],
        answers=OUTPUTS["answers"],
        csv=report(OUTPUTS["csv"], category="Scores"),
        metrics=OUTPUTS["metrics"],
        manifest=OUTPUTS["manifest"],
    log:
        "<logs>/report.log",
    benchmark:
        "<logs>/report.tsv"
    resources:
        mem_mb=memory(2000),
        runtime=60,
    params:
        **params_of("report"),
    shell:
        command_of("report")
