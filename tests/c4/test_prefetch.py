import threading

import pytest

from t5repro.c4.prefetch import overlapped


def test_results_come_with_their_items_and_in_their_order():
    assert list(overlapped(str, range(50))) == [(number, str(number)) for number in range(50)]
    assert list(overlapped(str, [])) == []


def test_the_next_item_is_made_while_the_one_before_is_worked_on():
    next_is_made = threading.Event()

    def items():
        yield 1
        next_is_made.set()
        yield 2

    waited = [result for _, result in overlapped(lambda _: next_is_made.wait(30), items())]
    assert waited == [True, True]


def test_one_item_is_made_ahead_and_no_more():
    made = []

    def items():
        for number in range(5):
            made.append(number)
            yield number

    found = overlapped(str, items())
    assert next(found) == (0, "0")
    assert made == [0, 1]
    found.close()


def test_what_the_work_raises_is_raised_and_later_items_are_not_worked_on():
    seen = []

    def work(number):
        seen.append(number)
        if number == 1:
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        list(overlapped(work, range(5)))
    assert seen in ([0, 1], [0, 1, 2])
