"""The table of tasks agrees with the functions of each task, and with itself."""

from t5repro.task_groups import ANSWERED_AS, DEFAULT_TASKS, RELEASED_GROUPS, SIMILARITY_TASKS
from t5repro.task_table import BENCHMARK_TITLES, BY_NAME, TASKS
from t5repro.tasks.predictions import is_unreadable_number
from t5repro.tasks.registry import TASKS as FUNCTIONS


def test_every_task_has_a_row_and_functions() -> None:
    assert len(BY_NAME) == len(TASKS) == 42
    assert FUNCTIONS.keys() == BY_NAME.keys()


def test_a_task_that_is_only_evaluated_has_no_training_files() -> None:
    without = {task.name for task in TASKS if "train" not in task.files}
    assert without == {name for name, task in FUNCTIONS.items() if task.evaluation_only}
    assert ANSWERED_AS.keys() == without - {"glue_wnli"}  # its answers are texts


def test_the_kind_of_an_answer_is_that_of_the_functions() -> None:
    for task in TASKS:
        functions = FUNCTIONS[task.name]
        assert bool(functions.labels) == (task.answer in ("label", "choice")), task.name
        assert (functions.is_invalid is is_unreadable_number) == (task.answer == "number")
        assert (task.options > 1) == (task.answer == "choice")


def test_a_task_of_an_average_or_a_leaderboard_is_part_of_a_benchmark() -> None:
    for task in TASKS:
        assert (task.benchmark in BENCHMARK_TITLES) == bool(task.scores or task.submission) or (
            task.name == "glue_mnli"  # trained on, and evaluated as its two validation sets
        )
        assert not task.benchmark or task.heading == BENCHMARK_TITLES[task.benchmark]


def test_the_facts_by_name_are_those_of_tasks_of_the_table() -> None:
    released = [name for group in RELEASED_GROUPS.values() for name in group]
    trained = [name for names in ANSWERED_AS.values() for name in names]
    named = {*released, *trained, *ANSWERED_AS, *SIMILARITY_TASKS, *DEFAULT_TASKS}
    assert named <= BY_NAME.keys()
    assert len(released) == len(set(released)) == 22
    assert all("train" in BY_NAME[name].files for name in (*released, *trained))
