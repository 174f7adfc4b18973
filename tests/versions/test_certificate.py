"""A certificate holds if stages were compared and none differs; with `strict`, if all were."""

import pytest

from t5repro.versions.certificate import Certificate, Outcome, StageVerdict


def certificate(*outcomes: Outcome, strict: bool = False) -> Certificate:
    verdicts = (StageVerdict(f"stage-{n}", outcome) for n, outcome in enumerate(outcomes))
    return Certificate("HEAD", tuple(verdicts), strict)


@pytest.mark.parametrize(
    ("outcomes", "holds", "strictly"),
    [
        (("exactly", "exactly"), True, True),
        (("exactly", "within the spread"), True, True),
        (("exactly", "not built"), True, False),
        (("exactly", "not committed"), True, False),
        (("exactly", "differently"), False, False),
        (("not built", "not built"), False, False),
        ((), False, False),
    ],
)
def test_nothing_compared_is_no_pass(
    outcomes: tuple[Outcome, ...], holds: bool, strictly: bool
) -> None:
    assert certificate(*outcomes).holds is holds
    assert certificate(*outcomes, strict=True).holds is strictly


def test_the_text_has_the_number_of_compared_stages() -> None:
    assert certificate("exactly", "not built").to_text().splitlines()[-2:] == [
        "1 of 2 stages compared",
        "no stage came out differently",
    ]
    text = certificate("exactly", "not built", strict=True).to_text()
    assert text.endswith("--strict requires that every stage is built and committed")
    assert certificate("not built").to_text().splitlines()[-2:] == [
        "0 of 1 stages compared",
        "nothing was compared: build the run, or commit its dvc.lock",
    ]
