"""The names of the fields in the inputs of a task."""

from t5repro.tasks.prefixes import field_names, fields_of


def test_fields_are_what_stands_between_the_words_with_a_colon_that_every_row_has() -> None:
    rows = [
        "rte sentence1: At 5: a bell. sentence2: A bell rang.",
        "rte sentence1: She said: no. sentence2: She refused.",
    ]
    assert field_names(rows) == ("sentence1", "sentence2")
    assert fields_of(rows[1], field_names(rows)) == {
        "sentence1": "She said: no.",
        "sentence2": "She refused.",
    }


def test_a_single_row_is_one_field() -> None:
    assert field_names(["cola sentence: A bell."]) == ()
    assert fields_of("cola sentence: A bell.", ()) == {"inputs": "cola sentence: A bell."}
