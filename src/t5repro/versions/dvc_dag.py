"""A drawing of the pipeline of `dvc.yaml` that fits a screen.

`dvc dag` draws every stage and every dependency, thousands of columns wide. Here the stages of a
rule are one node, and a dependency that follows from others has no line.
"""

from t5repro.stages import stage_of_rule


def drawing() -> str:
    """Return the rules and the dependencies between them, drawn by DVC."""
    import networkx
    from dvc.dagascii import draw
    from dvc.repo import Repo

    with Repo() as repo:
        stages = [(user.addressing, used.addressing) for user, used in repo.index.graph.edges]
    rules = {(_node(user), _node(used)) for user, used in stages}
    graph = networkx.DiGraph(sorted((user, used) for user, used in rules if user != used))
    reduced = networkx.transitive_reduction(graph)
    return str(draw(sorted(reduced.nodes), sorted(reduced.edges)))


def _node(stage: str) -> str:
    """Return the rule of a stage, or its name if it has none, such as ``data.dvc``."""
    rule = stage.partition("-")[0]
    row = stage_of_rule(rule)
    return row.name if row else stage
