"""The job of `contamination` on the planted set: corpus, ids, vocabulary and examples as files."""

from pathlib import Path
from typing import Any

from finished_run import RUN, VOCABULARY, write_vocabulary
from rows_in_corpus import pages, rows, write_pages

from t5repro.config.schema import Settings
from t5repro.config.sections.contamination import ContaminationStage
from t5repro.config.sections.tokens import TokensStage
from t5repro.config.stage_settings import stage_settings
from t5repro.files import write_json_lines, write_manifest
from t5repro.jobs.contamination import ContaminationJob
from t5repro.jobs.corpus import TokensJob
from t5repro.vocab.encode import encode_corpus

CORPUS, TOKENS = RUN / "c4/baseline", RUN / "tokens/baseline"
TASK, OTHER_TASK = "glue_rte", "super_glue_rte"


def contamination_job(folder: Path, **contamination: Any) -> ContaminationJob:
    """Return the job with its inputs written, in the current folder; `folder` gets its outputs."""
    write_vocabulary(Path())
    CORPUS.mkdir(parents=True)
    shards = [*write_pages(CORPUS, pages())]
    validation = CORPUS / "en-validation-00000-of-00001.parquet"
    validation.write_bytes(shards[-1].read_bytes())
    write_manifest(
        CORPUS / "manifest.json",
        rule="c4",
        settings={},
        inputs=[],
        outputs=[*shards, validation],
        counters={},
    )
    encode_corpus(
        TokensJob(
            TokensStage.model_validate({"tokens": {"languages": ["en"]}}),
            corpus=CORPUS / "manifest.json",
            vocabulary=VOCABULARY,
            folder=TOKENS,
            manifest=TOKENS / "manifest.json",
        )
    )
    files = {name: RUN / f"tasks/{name}" for name in (TASK, OTHER_TASK)}
    for path in files.values():
        path.mkdir(parents=True)
    examples = [{key: row[key] for key in row if key != "prediction"} for row in rows()]
    write_json_lines(files[TASK] / "validation.jsonl", examples)
    write_json_lines(files[TASK] / "train.jsonl", examples)  # its own rows are not compared
    write_json_lines(files[OTHER_TASK] / "train.jsonl", examples[-1:])  # the unseen one
    values = stage_settings(Settings(), "contamination")
    values["contamination"] |= contamination
    return ContaminationJob(
        ContaminationStage.model_validate(values),
        corpus=CORPUS / "manifest.json",
        tokens=TOKENS / "manifest.json",
        vocabulary=VOCABULARY,
        examples={TASK: files[TASK] / "validation.jsonl"},
        train={name: path / "train.jsonl" for name, path in files.items()},
        found=folder / "rows_in_corpus.json",
        manifest=folder / "manifest.json",
    )
