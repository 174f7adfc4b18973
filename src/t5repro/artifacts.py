"""Names of the files that a run writes: one definition for all who write, read or name them."""

MANIFEST = "manifest.json"  # of every job
VOCABULARY = "sentencepiece.model"
PIECES = "sentencepiece.vocab"
SAMPLE = "sample.txt"
WEIGHTS = "weights.safetensors"
OPTIMIZER = "optimizer.safetensors"
HISTORY = "history.csv"
SCORES = "scores.json"
ROWS_IN_CORPUS = "rows_in_corpus.json"
STEP_PREFIX = "step-"  # of the folders of kept checkpoints and their predictions
REPORT = "report.html"
LINEAGE_PAGE = "trace.html"
CORPUS_PAGE = "corpus.html"
CONTAMINATION_PAGE = "contamination.html"
SCORE_TABLE = "scores.csv"
ANSWERS = "answers"  # folder of the pages of the tasks
STEPS = "steps.json"  # losses of repeated steps; no rule writes it
REPEATED_ANSWERS = "answers.json"  # of another engine; no rule writes it
METRICS = ".metrics.json"  # ending of a file of each experiment, for DVC


def step_folder(step: int) -> str:
    """Return the folder of a kept checkpoint."""
    return f"{STEP_PREFIX}{step}"
