"""One comparison of two jobs: what differs, by name and value, and what does not count."""

import json
import math

from t5repro.lineage.dvc_lock import LockedStage
from t5repro.lineage.facts import JobFacts, differences, facts_of_lock, unknown_facts
from t5repro.lineage.redaction import hidden


def test_a_difference_names_the_fact_and_both_values() -> None:
    first, second = JobFacts(settings={"a.rate": 0.1}), JobFacts(settings={"a.rate": 0.2})
    (difference,) = differences(first, second)
    assert difference.text("here", "in dvc.lock") == "setting a.rate is 0.1 here, 0.2 in dvc.lock"
    (absent,) = differences(JobFacts(inputs={"x": "1" * 64}), JobFacts(inputs={}))
    assert absent.text("here", "there") == f"input x is {'1' * 12} here, absent there"


def test_an_unknown_fact_is_no_difference_and_is_listed() -> None:
    first = JobFacts(rule_files={"x.smk": "1"}, environment={"python": "3.11"})
    assert differences(first, JobFacts()) == []
    assert unknown_facts(first, JobFacts(), "rule_files", "environment") == [
        "rule files",
        "environment",
    ]


def test_lists_and_mappings_of_the_lock_are_compared_by_value_and_redaction() -> None:
    recorded = JobFacts(settings={"files": [hidden("/home/me/x")], "none": None, "map.k": 1})
    params = {"s.files": json.dumps(["/home/me/x"]), "s.none": "null", "s.map": '{"k": 1}'}
    assert differences(recorded, facts_of_lock(LockedStage(params=params), "s"), "settings") == []
    other = {**params, "s.files": json.dumps(["/home/me/y"])}
    (difference,) = differences(recorded, facts_of_lock(LockedStage(params=other), "s"), "settings")
    assert difference.name == "files"


def test_numbers_that_are_not_numbers_are_equal() -> None:
    assert differences(JobFacts(numbers={"x": math.nan}), JobFacts(numbers={"x": math.nan})) == []
    assert len(differences(JobFacts(numbers={"x": 1}), JobFacts(numbers={"x": math.nan}))) == 1


def test_a_truth_value_is_not_a_number() -> None:
    assert len(differences(JobFacts(settings={"x": True}), JobFacts(settings={"x": 1}))) == 1
