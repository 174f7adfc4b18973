"""The reproduction certificate: which stages of a committed lock this machine has reproduced.

The results in the working tree are compared with `dvc.lock` as committed at a revision, not as a
run here has sealed it. Equal bytes are an exact reproduction. If training or a later stage has
other bytes although code, settings and raw files are the committed ones, its numbers tell another
CPU from another calculation (`lineage/tolerance.py`): early losses, which rounding has hardly
changed, and then losses and scores by the measured spread of the run (`lineage/spread.py`).

A run may have another name than the committed one, and another engine. The stages that compute with
it then have other bytes by nature: dropout draws other numbers, so losses and scores are judged by
the spread over the committed seeds as well.
"""

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from t5repro.config.schema import Settings
from t5repro.config.sections.devices import TITLES, EngineName
from t5repro.errors import ArtifactError
from t5repro.lineage.dvc_lock import LOCK_FILE, parse_lock
from t5repro.lineage.git import commit_of, file_at
from t5repro.lineage.spread import Spread, deviations_of, parse_spread, spread_path, widest
from t5repro.lineage.tolerance import JobKind, compare_numbers, rounding_of
from t5repro.stages import BY_NAME, depends_on_device
from t5repro.versions import dvc_pipeline
from t5repro.versions.committed import CommittedRun, numbers_here
from t5repro.versions.proof import Checkout, StageFiles, files_of_stage, md5_of_folder
from t5repro.versions.snakemake_graph import PlannedStage, resolve

REPORT = "report"
SCORED_BY = {"evaluate_predict": "evaluate_score"}  # predictions have no distance; scores have

Outcome = Literal[
    "exactly", "within the spread", "on another engine", "differently", "not built", "not committed"
]
NO_SEEDS = (
    "losses and scores of another engine are judged by the spread over seeds, and no committed "
    "experiment has two; certificate --engine compares the engines themselves"
)
NOT_COMPARED = ("not built", "not committed")


@dataclass(frozen=True)
class StageVerdict:
    """The outcome of a stage; `why` explains every outcome but an exact one."""

    stage: str
    outcome: Outcome
    why: str = ""


@dataclass(frozen=True)
class Certificate:
    """The verdicts of all stages in the order of the graph; none without a committed lock.

    Attributes:
        revision: the git revision that was compared with.
        verdicts: one for each stage.
        strict: whether every stage must have been compared.
    """

    revision: str
    verdicts: tuple[StageVerdict, ...]
    strict: bool = False

    def first(self, outcome: Outcome) -> StageVerdict | None:
        """Return the first stage with an outcome."""
        return next((verdict for verdict in self.verdicts if verdict.outcome == outcome), None)

    @property
    def compared(self) -> int:
        """Number of stages with a committed and a built result."""
        return sum(verdict.outcome not in NOT_COMPARED for verdict in self.verdicts)

    @property
    def holds(self) -> bool:
        """Whether stages were compared, and none came out differently."""
        expected = len(self.verdicts) if self.strict else 1
        return 0 < expected <= self.compared and self.first("differently") is None

    def to_text(self) -> str:
        """Return the certificate as human-readable text."""
        if not self.verdicts:
            return (
                f"no certificate: {self.revision} has no {LOCK_FILE} to compare with; commit the "
                "one that this run has sealed"
            )
        lines = [f"reproduction of {LOCK_FILE} at {self.revision}"]
        for verdict in self.verdicts:
            why = f": {verdict.why}" if verdict.why else ""
            lines.append(f"  {verdict.stage:32} {verdict.outcome}{why}")
        lines.append(f"{self.compared} of {len(self.verdicts)} stages compared")
        if fault := self.first("differently"):
            lines.append(f"first difference: {fault.stage}, {fault.why}")
        elif not self.compared:
            lines.append("nothing was compared: build the run, or commit its dvc.lock")
        else:
            lines.append("no stage came out differently")
            if not self.holds:
                lines.append("--strict requires that every stage is built and committed")
            if within := self.first("within the spread"):
                lines.append(
                    f"rounding on this machine differs from {within.stage} on; "
                    "every loss and score is within the measured spread"
                )
            if foreign := self.first("on another engine"):
                lines.append(
                    f"another engine computed from {foreign.stage} on; every loss and score is "
                    "within the spread of rounding and of the committed seeds"
                )
        return "\n".join(lines)


@dataclass(frozen=True)
class _Comparison:
    """The committed run and the checkout.

    Attributes:
        committed: the lock and the records of the revision.
        settings: of the run here, in the words of the committed one.
        engine: of the run here.
        stages: of the run here.
        spread: the measured spread of the run; None if its numbers cannot be judged.
        bytes_required: why they cannot.
        checkout: hashes of the files.
        verdicts: stage -> its verdict, once it is known.
    """

    committed: CommittedRun
    settings: Settings
    engine: EngineName
    stages: list[PlannedStage]
    spread: Spread | None
    bytes_required: str
    checkout: Checkout = field(default_factory=Checkout)
    verdicts: dict[str, StageVerdict] = field(default_factory=dict)

    def compare(self, stage: PlannedStage) -> None:
        """Add the verdict about a stage; those that decide it have theirs."""
        self.verdicts[stage.name] = StageVerdict(stage.name, *self._outcome(stage))

    def _outcome(self, stage: PlannedStage) -> tuple[Outcome, str]:
        """Return the outcome of a stage and its reason."""
        locked = self.committed.lock.stages.get(stage.name)
        if locked is None:
            return "not committed", f"no stage of this name in {LOCK_FILE}"
        files = files_of_stage(stage, self.checkout.hasher)
        if files.missing:
            return "not built", f"{files.missing[0]} is missing"
        if locked.outs.get(stage.folder) == md5_of_folder(stage, files):
            return "exactly", ""
        changed = self.committed.changed_question(self.settings, stage, self.checkout)
        if not changed and self.committed.has_results_of_other_name(stage, files):
            return "exactly", ""
        outcome, reason = self._outcome_of_other_bytes(stage, files, changed)
        return outcome, f"{self.committed.first_differing_file(stage, files)}; {reason}"

    def _outcome_of_other_bytes(
        self, stage: PlannedStage, files: StageFiles, changed: str | None
    ) -> tuple[Outcome, str]:
        # Another setting or code is another experiment, whose numbers no spread applies to.
        if changed or not depends_on_device(stage.table_name):
            return "differently", changed or self._origin(stage)
        if self._is_on_other_engine(stage) and not self._of_seeds:
            return "differently", f"{self._engines}; {NO_SEEDS}"
        try:
            expected = self.committed.numbers(stage)
            actual = numbers_here(stage, files)
        except ArtifactError as error:
            return "differently", str(error)
        comparisons = list(compare_numbers(expected, actual, self._kind(stage)))
        fault = next((number for number in comparisons if not number.agrees), None)
        # Early losses need no spread, and name a fault more precisely than other bytes do.
        if self.spread is None and (fault is None or fault.allowed is None):
            return "differently", self.bytes_required
        if fault:
            return "differently", f"{fault}; {self._origin(stage)}"
        if reason := self._fault_of_others(stage):
            return "differently", reason
        farthest = max(comparisons, key=lambda number: number.share, default=None)
        found = "its losses, scores and counts are the committed ones"
        if farthest and farthest.share:
            found = str(farthest)
        if self._is_on_other_engine(stage):
            return "on another engine", f"{self._engines}; {found}"
        return "within the spread", found

    def _is_on_other_engine(self, stage: PlannedStage) -> bool:
        return self.committed.engine not in (None, self.engine) and depends_on_device(
            stage.table_name
        )

    @property
    def _engines(self) -> str:
        engines = (self.engine, self.committed.engine)
        return f"computed with {' in place of '.join(TITLES[name] for name in engines if name)}"

    def _fault_of_others(self, stage: PlannedStage) -> str | None:
        """Return the fault of another stage that decides about a stage without losses or scores."""
        if stage.table_name in SCORED_BY:
            deciding = {f"{SCORED_BY[stage.table_name]}-{stage.node}"}
        elif stage.rule == REPORT:
            deciding = set(self.verdicts)
        else:
            return None
        for name, verdict in self.verdicts.items():
            if name in deciding and verdict.outcome == "differently":
                return f"{name} came out differently"
        if stage.rule == REPORT and not self._first_differing_input(stage):
            return self._origin(stage)
        return None

    def _kind(self, stage: PlannedStage) -> JobKind:
        deviations = self.spread.deviations if self.spread else {}
        of_rule = deviations.get(stage.table_name, {})
        is_foreign = self._is_on_other_engine(stage)
        return JobKind(
            same_inputs=self._first_differing_input(stage) is None,
            same_noise=not is_foreign,
            on_device=BY_NAME[stage.table_name].on_device,
            rounding=rounding_of(dvc_pipeline.settings_of_stage(self.settings, stage)),
            deviations=widest([of_rule, *self._of_seeds[stage.rule]] if is_foreign else [of_rule]),
            # Twins differ from the start of pre-training on: only there are their inputs equal.
            growth=deviations.get("pretrain", {}),
        )

    @cached_property
    def _of_seeds(self) -> dict[str, list[Mapping[str, float]]]:
        """Rule -> deviations of the committed numbers over the seeds of each experiment."""
        changes = {
            experiment.name: json.dumps({**experiment.change, "seed": None}, sort_keys=True)
            for experiment in self.settings.experiments
        }
        numbers = defaultdict(list)
        for stage in self.stages:
            if stage.node in changes and stage.name in self.committed.lock.stages:
                group = (stage.rule, changes[stage.node])
                numbers[group].append(self.committed.numbers(stage))
        deviations: dict[str, list[Mapping[str, float]]] = defaultdict(list)
        for (rule, _), of_seeds in numbers.items():
            if len(of_seeds) > 1:
                deviations[rule].append(deviations_of(of_seeds))
        return deviations

    def _origin(self, stage: PlannedStage) -> str:
        """Return whether the difference came with an input, or arose on this machine."""
        if path := self._first_differing_input(stage):
            return f"its input {path} differs already"
        if self._is_on_other_engine(stage):
            return self._engines
        return "same code, settings and inputs: this machine computes different bytes"

    def _first_differing_input(self, stage: PlannedStage) -> str | None:
        return self.committed.first_differing_input(stage, self.checkout)


def certify(*run_files: Path, revision: str = "HEAD", strict: bool = False) -> Certificate:
    """Compare the results in the working tree with `dvc.lock` and the records of a revision.

    Args:
        run_files: of the run; later ones replace settings of earlier ones.
        revision: the git revision to compare with.
        strict: require equal bytes of every stage.

    Raises:
        ArtifactError: a committed record or spread is damaged.
        LineageError: git does not know the revision, or answers nothing.
    """
    commit_of(Path(), revision)  # else every file would seem absent
    lock = file_at(Path(), revision, LOCK_FILE)
    if lock is None:
        return Certificate(revision, (), strict)
    own_settings, stages = resolve(*run_files)
    committed = CommittedRun(revision, parse_lock(lock), own_settings.run.name)
    settings = committed.in_its_words(own_settings)
    spread, bytes_required = _spread_of(settings, stages, revision)
    if strict:
        spread, bytes_required = None, "--strict requires equal bytes"
    engine = own_settings.devices.engine
    comparison = _Comparison(committed, settings, engine, stages, spread, bytes_required)
    # The verdict about predictions needs that about their scores.
    for stage in sorted(stages, key=lambda stage: stage.table_name in SCORED_BY):
        comparison.compare(stage)
    return Certificate(revision, tuple(comparison.verdicts[stage.name] for stage in stages), strict)


def _spread_of(
    settings: Settings, stages: list[PlannedStage], revision: str
) -> tuple[Spread | None, str]:
    """Return the committed spread of a run, or why its numbers cannot be judged without one."""
    path = spread_path(settings.run.name).as_posix()
    text = file_at(Path(), revision, path)
    if text is None:
        return None, (
            f"losses and scores cannot be judged without a measured spread ({path} is not in "
            f"{revision}), so bytes must be equal"
        )
    spread = parse_spread(text, f"{path} at {revision}")
    leaves = {stage.name: dvc_pipeline.leaves_of(settings, stage) for stage in stages}
    defaults = {
        stage.name: dvc_pipeline.leaves_of(Settings(), replace(stage, node="")) for stage in stages
    }
    if setting := spread.other_setting(leaves, defaults):
        return None, (
            f"losses and scores cannot be judged: {path} was measured with another {setting}, so "
            "bytes must be equal; measure it again with python benchmarks/spread.py"
        )
    return spread, ""
