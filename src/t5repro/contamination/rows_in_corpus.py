"""Writes which evaluated rows the corpus has; the rule `contamination`.

The search is `find`; the report adds the scores of each experiment with and without the rows.
Experiments with the same corpus, vocabulary and tasks share the result, so answers of a model are
not searched: `t5repro contamination` does so. Numbers of processes and of Spark's tasks change no
byte.
"""

from functools import partial

from t5repro.contamination.find import Corpus, SearchParts, find
from t5repro.contamination.methods import BY_NAME
from t5repro.contamination.search import search_parts
from t5repro.files import read_json_lines, write_json, write_manifest
from t5repro.jobs.contamination import ContaminationJob
from t5repro.tasks.registry import task_named
from t5repro.vocab.batches import processes_for
from t5repro.vocab.corpus import shards_of
from t5repro.vocab.token_files import split_files


def find_contamination(job: ContaminationJob) -> None:
    """Write the fields that are found, with a search in processes of this machine.

    Raises:
        ArtifactError: a file is missing or damaged.
    """
    processes = processes_for(job.corpus.parent.glob("*.parquet"))
    write_found(job, partial(search_parts, processes=processes))


def write_found(job: ContaminationJob, search_in: SearchParts) -> None:
    """Write the fields that are found with their pages, and count the rows.

    Args:
        job: the job.
        search_in: searches parts of the corpus.

    Raises:
        ArtifactError: a file is missing or damaged.
    """
    settings = job.settings.contamination
    languages = job.settings.tokens.languages
    pages = [path for name in languages for path in shards_of(job.corpus, name, "train")]
    ids, offsets = split_files(job.tokens.parent, "train")
    train = job.train if settings.other_tasks else {}
    rows = {task: list(read_json_lines(path)) for task, path in sorted(job.examples.items())}
    tasks = {name: task_named(name, job.settings.tasks) for name in rows}
    methods = [BY_NAME[name] for name in dict.fromkeys(settings.methods)]
    corpus = Corpus(pages, ids, job.vocabulary, train)
    content = find(tasks, rows, methods, corpus, search_in)
    write_json(job.found, content)
    write_manifest(
        job.manifest,
        rule="contamination",
        settings=job.settings.model_dump(mode="json"),
        inputs=[
            *(job.corpus, *pages, job.tokens, ids, offsets, job.vocabulary),
            *job.examples.values(),
            *train.values(),
        ],
        outputs=[job.found],
        counters={
            "searched": content["searched"],
            "rows": {
                task: {name: entry["rows"] for name, entry in sources["corpus"]["methods"].items()}
                for task, sources in content["tasks"].items()
            },
        },
    )
