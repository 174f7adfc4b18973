"""The rules of C4 one after another, on one machine or on Spark."""

from t5repro.c4.clean import clean_shard
from t5repro.c4.deduplicate import deduplicate
from t5repro.c4.spark import steps
from t5repro.c4.write import write_corpus
from t5repro.config.stage_settings import stage_model, stage_settings
from t5repro.jobs.corpus import CleanJob, CorpusJob, DedupJob


def stage(rule, settings):
    """Return the settings of a rule."""
    return stage_model(rule)(**stage_settings(settings, rule))


def clean_job(folder, settings, number=0, **fields):
    """Return a job of `c4_clean` that writes below a folder."""
    count = settings.c4.clean_parts
    names = [f"{number:05d}" + (f"-{output:03d}" if count > 1 else "") for output in range(count)]
    outputs = [folder / f"{name}.parquet" for name in names]
    return CleanJob(stage("c4_clean", settings), outputs, folder / f"{number:05d}.json", **fields)


def dedup_job(folder, settings, cleaned):
    """Return the job of `c4_dedup` that writes below a folder."""
    output = folder / "decisions"
    return DedupJob(stage("c4_dedup", settings), cleaned, output, output / "manifest.json")


def corpus_job(folder, settings, cleaned, **lists):
    """Return the job of `c4` that writes below a folder."""
    corpus = folder / "c4"
    decisions = folder / "decisions"
    manifest = corpus / "manifest.json"
    return CorpusJob(stage("c4", settings), cleaned, decisions, corpus, manifest, **lists)


def build_corpus(
    folder,
    settings,
    wet,
    *,
    shards=1,
    order=1,
    select=None,
    punkt=None,
    bad_words=None,
    wat=(),
    session=None,
):
    """Run the three rules below a folder; return the folder of the corpus.

    Args:
        folder: gets the files of all rules.
        settings: of the run.
        wet: WET files.
        shards: number of cleaning jobs.
        order: -1 passes files in reverse order to every job.
        select: lists of `c4.select`.
        punkt: language -> Punkt parameters.
        bad_words: language -> list.
        wat: WAT file of each WET file.
        session: Spark session; None uses this machine.
    """
    lists = {"punkt": punkt or {}, "bad_words": bad_words or {}}
    cleaned = []
    for number in range(shards):
        files = wet[number::shards][::order]
        crawl = {"wet": files, "wat": wat[number::shards][::order]}
        job = clean_job(folder, settings, number, **crawl, select=select or {}, **lists)
        cleaned.extend(job.pages)
        clean_shard(job) if session is None else steps.clean_shard(session, job)
    job = dedup_job(folder, settings, cleaned[::order])
    deduplicate(job) if session is None else steps.deduplicate(session, job)
    job = corpus_job(folder, settings, cleaned[::order], **lists)
    write_corpus(job) if session is None else steps.write_corpus(session, job)
    return job.folder
