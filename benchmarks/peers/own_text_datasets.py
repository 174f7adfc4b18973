"""Load JSON lines with datasets and map them to ids with a fast tokenizer: one line of JSON.

    python own_text_datasets.py FILE MODEL PROCESSES

The memory is that of this process and its children, asked for ten times a second.
"""

import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable

import psutil
from datasets import Dataset, disable_progress_bars, load_dataset
from transformers import T5TokenizerFast

POLL_SECONDS = 0.1


def memory() -> float:
    """Return the resident memory of this process and its children; MB."""
    total = 0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total / 1e6


def measure(work: Callable[[], Dataset]) -> tuple[Dataset, list[float]]:
    """Return what `work` returns, and seconds, processor seconds and peak memory."""
    peak, done = [memory()], threading.Event()

    def watch() -> None:
        while not done.wait(POLL_SECONDS):
            peak[0] = max(peak[0], memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    begin, clock = time.perf_counter(), os.times()
    result = work()
    end = os.times()
    seconds = time.perf_counter() - begin
    done.set()
    watcher.join()
    processor = sum(end[:4]) - sum(clock[:4])
    return result, [seconds, processor, peak[0]]


def main() -> None:
    """Measure both steps."""
    text, model, processes = sys.argv[1], sys.argv[2], int(sys.argv[3])
    disable_progress_bars()
    tokenizer = T5TokenizerFast(vocab_file=model, extra_ids=0)
    with tempfile.TemporaryDirectory() as cache:
        rows, load = measure(
            lambda: load_dataset("json", data_files=text, split="train", cache_dir=cache)
        )
        _, mapped = measure(
            lambda: rows.map(
                lambda batch: {"ids": tokenizer(batch["text"])["input_ids"]},
                batched=True,
                num_proc=processes,
                remove_columns=rows.column_names,
            )
        )
    print(json.dumps({"load": load, "map": mapped}))


if __name__ == "__main__":
    main()
