"""Work on batches in several processes."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from t5repro.vocab import batches
from t5repro.vocab.batches import in_order, pool_for, processes_for


def test_results_come_in_order_and_few_batches_are_read_ahead() -> None:
    read = []

    def numbers():
        for number in range(100):
            read.append(number)
            yield number

    with ThreadPoolExecutor(4) as pool:
        results = in_order(pool, lambda number: number * number, numbers())
        assert next(results) == 0
        assert len(read) == batches.BATCHES_AHEAD
        assert [0, *results] == [number * number for number in range(100)]


@pytest.mark.parametrize("pool", [None, ThreadPoolExecutor(2)])
def test_an_error_of_a_batch_is_raised_in_its_place(pool) -> None:
    results = in_order(pool, lambda number: 12 // number, [3, 4, 0, 6])
    assert [next(results), next(results)] == [4, 3]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_processes_follow_the_size_of_the_files_and_the_cores(tmp_path, monkeypatch) -> None:
    file = tmp_path / "pages"
    file.write_bytes(b"x" * 30)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(16)))
    counts = {}
    for size in (31, 30, 10, 1):
        monkeypatch.setattr(batches, "BYTES_OF_PROCESS", size)
        counts[size] = processes_for([file])
    assert counts == {31: 1, 30: 2, 10: 4, 1: batches.PROCESSES}
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})
    assert processes_for([file]) == 1
    with pool_for([file]) as pool:
        assert pool is None
