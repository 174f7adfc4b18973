"""Streams depend on the seed and the name, and on nothing else."""

from t5repro.randomness import seed_pair, single_seed, stream


def test_a_stream_is_the_same_on_every_machine() -> None:
    drawn = stream(0, "pretrain", "epoch", 1).integers(0, 1000, 4)
    assert drawn.tolist() == [4, 824, 739, 314]
    assert seed_pair(0, "dropout") == (202902942, 1094267855)


def test_names_and_seeds_part_streams() -> None:
    drawn = {
        tuple(stream(seed, *name).integers(0, 2**30, 2))
        for seed in (0, 1)
        for name in (("a",), ("b",), ("a", 1), ("a1",))
    }
    assert len(drawn) == 8


def test_seeds_fit_tensorflows_int32() -> None:
    assert all(0 <= single_seed(seed, "x") < 2**31 for seed in range(500))
