"""The page: whole, closed to the network, safe with hostile text, equal to the CSV, repeatable."""

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from t5repro.errors import ArtifactError
from t5repro.report.rows import BOOTSTRAP
from t5repro.report.scores_csv import read_csv
from t5repro.report.titles import format_score

Make = Callable[[float], dict[str, Any]]

VOID = {"meta", "link", "br", "img", "hr", "input", "wbr"}
LOADING = {"src", "srcset", "data", "action", "poster", "background", "xlink:href", "formaction"}


class Page(HTMLParser):
    """Collects tags, attributes, numbers and visible text; checks that tags balance."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open_tags: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.numbers: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open_tags == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag == "data":
            self.numbers.append((dict(attrs)["value"] or "", ""))
        if tag not in VOID:
            self.open_tags.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open_tags.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open_tags and self.open_tags[-1] == "data":
            self.numbers[-1] = (self.numbers[-1][0], data)
        if self.open_tags and self.open_tags[-1] not in {"style", "script"}:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def table_of(page: str, kind: str) -> str:
    """Return the first table of a class."""
    return re.findall(rf'<table class="{kind}">.*?</table>', page, flags=re.DOTALL)[0]


def test_the_page_is_balanced_and_has_its_parts(report: Any) -> None:
    page = Page(report.page)
    assert page.tags.count("h1") == 1
    for part in ("scores", "paper", "losses", "corpus", "settings", "sources"):
        assert ("section", "id", part) in page.attributes
        assert ("a", "href", f"#{part}") in page.attributes
    assert ("html", "lang", "en") in page.attributes


def test_ids_are_unique_and_every_label_exists(report: Any) -> None:
    page = Page(report.page)
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    labels = {
        label
        for _, name, value in page.attributes
        if name == "aria-labelledby"
        for label in value.split()
    }
    assert labels <= set(ids)


def test_nothing_is_loaded_and_nothing_runs(report: Any) -> None:
    page = Page(report.page)
    assert not {"script", "link", "img", "iframe", "object", "embed"} & set(page.tags)
    assert not [item for item in page.attributes if item[1] in LOADING or item[1].startswith("on")]
    links = [value for _, name, value in page.attributes if name == "href"]
    for link in links:
        assert link.startswith("#") or (report.html.parent / link).is_file(), link
    style = report.page.partition("<style>")[2].partition("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style
    policies = [value for _, name, value in page.attributes if name == "content"]
    assert any(policy.startswith("default-src 'none'; style-src") for policy in policies)


def test_text_of_the_crawl_is_escaped(report: Any) -> None:
    assert "<script>alert" not in report.page
    assert "&lt;script&gt;alert(" in report.page
    assert '<script>alert("x")</script>' in Page(report.page).text
    assert "\u202e" not in report.page  # would turn the reading direction
    assert "\x00" not in report.page


def test_a_task_or_metric_name_of_markup_is_only_text(run: Any) -> None:
    name = "<script>x</script>"
    for scores in run.scores.values():
        scores["tasks"][name] = scores["tasks"]["glue_rte"]
        scores["tasks"]["squad"]["metrics"]['"><b>'] = 1.0
    page = Page(run.write().page)
    assert "script" not in page.tags
    assert name in page.text


def test_an_origin_of_markup_is_only_text(run: Any) -> None:
    (source,) = run.settings.data.sources
    data = run.settings.data.model_copy(
        update={"sources": [source.model_copy(update={"origin": "<script>y</script>"})]}
    )
    run.settings = run.settings.model_copy(update={"data": data})
    page = Page(run.write().page)
    assert "script" not in page.tags
    assert "<script>y</script>" in page.text


def test_numbers_of_the_page_are_those_of_the_csv(report: Any) -> None:
    rows = [row for row in read_csv(report.csv) if not row.metric.endswith(BOOTSTRAP)]
    expected = sorted(
        ("" if row.value is None else repr(row.value), format_score(row.value)) for row in rows
    )
    assert sorted(Page(table_of(report.page, "scores")).numbers) == expected
    assert len(expected) == 38


def test_the_best_experiment_is_marked_by_a_class(report: Any) -> None:
    assert '<data value="91.66666666666667" class="best beats">91.67</data>' in report.page
    assert '<data value="62.5" class="best nobeat">62.50</data>' in report.page
    assert '<data value="59.375" class="beats">59.38</data>' in report.page  # a tie marks none


def test_the_difference_is_first_minus_second(report: Any) -> None:
    text = Page(report.page).text
    assert "gain from pre-training" in text
    assert "+4.12" in text  # 91.666… - 87.541…
    assert "9 better, 1 worse, 1 equal" in text


def test_a_difference_in_several_settings_is_titled_by_names(run: Any) -> None:
    experiments = [
        item.model_copy(update={"change": {**item.change, "seed": 3}} if item.change else {})
        for item in run.settings.experiments
    ]
    run.settings = run.settings.model_copy(update={"experiments": experiments})
    text = Page(run.write().page).text
    assert "baseline − no_pretraining" in text
    assert "gain from pre-training" not in text


def test_a_difference_of_seeds_has_its_spread(run: Any, make_scores: Make) -> None:
    arms = {"baseline": 0.0, "baseline_seed_1": 0.0}
    arms |= {"no_pretraining": 11.0, "no_pretraining_seed_1": 22.0}
    experiments = [
        entry.model_copy(update={"name": arm, "change": {**entry.change, "seed": seed}})
        for entry in run.settings.experiments
        for seed, arm in enumerate((entry.name, f"{entry.name}_seed_1"))
    ]
    run.settings = run.settings.model_copy(update={"experiments": experiments})
    run.histories |= {f"{name}_seed_1": paths for name, paths in run.histories.items()}
    run.scores = {arm: make_scores(shift) for arm, shift in arms.items()}
    text = Page(run.write().page).text
    assert "+12.00 ±5.66 on average" in text
    assert "± standard deviation over seeds: 9 better, 1 worse, 1 equal" in text
    assert "+16.50 ±7.78" in text  # of 11 and 22


def test_one_experiment_has_no_difference(run: Any) -> None:
    run.scores = {"baseline": run.scores["baseline"]}
    run.histories = {"baseline": run.histories["baseline"]}
    page = Page(run.write().page)
    assert "gain from pre-training" not in page.text
    assert len(Page(table_of(run.page, "scores")).numbers) == 19


def test_an_undefined_average_has_a_reason(report: Any) -> None:
    text = Page(report.page).text
    assert "GLUE: undefined, because it also needs QQP, QNLI." in text
    assert "COPA: undefined" in text


def test_the_papers_scores_come_with_a_warning(report: Any) -> None:
    text = Page(report.page).text
    assert "92.68" in text
    assert "80.62" in text
    assert "Not comparable. This run departs from the paper in model (" in text


def test_the_count_of_beaten_baselines_is_shown(report: Any) -> None:
    assert "9 of 11 tasks" in Page(report.page).text


def test_negative_scores_are_named_below_the_plot_that_draws_them_at_0(
    run: Any, make_scores: Make
) -> None:
    note = "The plot starts at 0, where it draws negative scores: CoLA. The table has their values."
    run.scores = {name: make_scores(0.0) for name in run.scores}  # -3.5
    assert note in Page(run.write().page).text
    run.scores = {name: make_scores(5.0) for name in run.scores}  # 1.5
    assert "where it draws negative scores" not in Page(run.write().page).text


def test_the_columns_of_experiments_have_a_heading_and_invalid_is_explained(report: Any) -> None:
    text = Page(report.page).text
    assert "experiments of this run" in table_of(report.page, "scores")
    assert "“Invalid” counts answers outside the allowed ones, by experiment" in text


def test_settings_that_differ_from_the_baseline_are_listed(report: Any) -> None:
    table = report.page.partition("Differences from the paper’s baseline")[2].partition("</table>")[
        0
    ]
    rows = re.findall(r"<code>([a-z_.]+)</code>", table)
    assert rows == [
        "model.d_model",
        "model.num_encoder_layers",
        "model.num_decoder_layers",
        "pretrain.steps",
        "finetune.steps",
    ]


def test_no_local_path_is_on_the_page(report: Any) -> None:
    assert "/home/somebody" not in report.page
    assert str(report.folder) not in report.page


def test_every_input_is_named_with_its_hash(report: Any) -> None:
    manifest = json.loads(report.manifest.read_text(encoding="utf-8"))
    for item in manifest["inputs"]:
        assert item["path"] in report.page
        assert item["sha256"][:12] in report.page


def test_accuracies_on_held_out_text_stand_next_to_the_loss_there(run: Any) -> None:
    run.histories["baseline"]["pretrain"] = "step,loss,validation_loss\n300,6.4,5.5\n"
    run.trained = {"final_validation_accuracies": {"masked_pieces": 0.125, "pairs": 0.5}}
    page = run.write().page
    assert "masked pieces (accuracy, %)</th>" in page
    assert '<td class="number">12.5</td><td class="number">50.0</td></tr>' in page
    run.trained = {}
    assert "accuracy, %" not in run.write().page


def test_phases_of_pretraining_have_a_table(run: Any) -> None:
    assert "Phases of pre-training" not in run.write().page
    change = {"pretrain.from_experiment": "baseline", "pretrain.steps": 7}
    later = run.settings.experiments[1].model_copy(update={"change": change})
    experiments = [run.settings.experiments[0], later]
    run.settings = run.settings.model_copy(update={"experiments": experiments})
    page = run.write().page
    assert "Phases of pre-training</h3>" in page
    assert '<td>no_pretraining</td><td class="number">7</td>' in page


def test_a_phase_without_a_step_says_so(run: Any) -> None:
    for histories in run.histories.values():
        histories["pretrain"] = "step,loss,learning_rate,tokens\n"
    assert "This phase has no steps." in Page(run.write().page).text


def test_a_run_without_a_corpus_has_no_section_of_it(run: Any) -> None:
    assert 'id="corpus"' in run.write().page
    run.corpus = {}
    page = run.write().page
    assert "#corpus" not in page
    assert 'id="corpus"' not in page


def test_equal_histories_share_a_line(run: Any) -> None:
    run.histories["no_pretraining"] = run.histories["baseline"]
    page = run.write().page
    assert page.count("<polyline") == 2
    assert "baseline = no_pretraining" in page


def test_a_loss_curve_can_have_any_number_of_steps(run: Any) -> None:
    lines = "".join(f"{step},{1 + 1 / step}\n" for step in range(1, 5001))
    run.histories["baseline"]["pretrain"] = "step,loss\n" + lines
    points = re.search(r'points="([^"]+)"', run.write().page)
    assert points is not None
    assert len(points[1].split()) <= 240


def test_the_same_inputs_give_the_same_bytes(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = {path: path.read_bytes() for path in (run.write().html, run.csv, run.manifest)}
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    again = run.write()
    assert {path: path.read_bytes() for path in (again.html, again.csv, again.manifest)} == first


def test_a_damaged_score_file_is_refused(run: Any) -> None:
    del run.scores["baseline"]["averages"]
    with pytest.raises(ArtifactError, match=r"scores\.json lacks \['averages'\]"):
        run.write()


def test_unknown_tasks_come_last_under_their_own_heading(
    run: Any, make_scores: Callable[[float], dict[str, Any]]
) -> None:
    for scores in run.scores.values():
        scores["tasks"]["a_new_task"] = make_scores(0.0)["tasks"]["glue_rte"]
    text = Page(run.write().page).text
    assert "Other tasks a_new_task" in text
