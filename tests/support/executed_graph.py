"""The operations that TensorFlow executes for a function, with the source line of each."""

import sysconfig
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context

LIBRARIES = tuple({sysconfig.get_paths()[name] for name in ("purelib", "stdlib", "platlib")})
GRADIENT = "gradient_tape/"
ALIASES = {"EnsureShape", "ExpandDims", "Identity", "Reshape", "Snapshot", "Squeeze"}
KEPT = {"Const", "ReadVariableOp", "_Arg"}  # their arrays live on: no operation writes into them
FOLDED_RECIPROCAL = "_recip"  # ends the constant 1 / c that replaces a division by the constant c


@dataclass(frozen=True)
class Executed:
    """An operation of an optimised graph.

    Attributes:
        op: its type; ``Reciprocal`` also for an array of reciprocals that Grappler computed.
        name: of the node.
        types: of its arithmetic, such as ``float32``.
        sources: of the graph as it was traced.
        optimised: whether it is of the graph that ran; else of the graph as it was traced.
        is_timed: whether the order in which it adds three or more arrays depends on the time at
            which other operations end, see `sums_in_any_order`.
    """

    op: str
    name: str
    types: frozenset[str]
    sources: "Sources"
    optimised: bool
    is_timed: bool = False

    @property
    def source(self) -> str:
        """File and line that created it, or the operation that it replaces."""
        return self.sources.of_node(self.name)


def executed_operations(function: Callable[..., Any], *arguments: Any) -> list[Executed]:
    """Run a function as a graph and return the operations of the graph that was executed.

    Grappler and the passes for oneDNN rewrite the graph before it runs. The operations of the
    graph as it was traced are added, since those with constant inputs run while it is optimised.
    """
    concrete = tf.function(function, autograph=False).get_concrete_function(*arguments)
    traced = dict(traced_operations(concrete.graph))
    context.context().enable_run_metadata()
    context.context().export_run_metadata()  # of what ran before, such as the arguments
    try:
        concrete(*arguments)
        metadata = context.context().export_run_metadata()
    finally:
        context.context().disable_run_metadata()
    nodes = [node for graph in metadata.partition_graphs for node in graph.node]
    assert nodes, "TensorFlow returned no graph"
    sources = Sources(traced)
    traced_nodes = [operation.node_def for operation in traced.values()]
    timed = {name for graph in metadata.partition_graphs for name in sums_in_any_order(graph.node)}
    return [
        Executed(
            _op_of(node),
            node.name,
            _types_of(node),
            sources,
            optimised=optimised,
            is_timed=optimised and node.name in timed,
        )
        for optimised, group in ((True, nodes), (False, traced_nodes))
        for node in group
    ]


def sums_in_any_order(nodes: Sequence[Any]) -> set[str]:
    """Return the names of the sums of an executed graph whose order time decides.

    `AddN` writes into the first of its arrays that nothing else holds any more, and adds that one
    first, in exchange for the first. Another operation that reads the array may be done by then,
    or not. The first two in exchanged order have the same sum.
    """
    by_name = {node.name: node for node in nodes}
    readers: dict[str, set[str]] = defaultdict(set)
    for node in nodes:
        if node.op not in ALIASES:
            for source in _read_by(node):
                readers[_array_of(source, by_name)].add(node.name)

    def written_into(arrays: Sequence[str]) -> set[int]:
        """Return the numbers of the arrays that may be written into; 0 also for a new one."""
        possible = set()
        for number, array in enumerate(arrays):
            if by_name[array.partition(":")[0]].op in KEPT:
                continue
            possible.add(number)
            if len(readers[array]) == 1:
                return possible
        return possible | {0}

    timed = set()
    for node in nodes:
        if node.op == "AddN" and len(_read_by(node)) > 2:
            numbers = written_into([_array_of(source, by_name) for source in _read_by(node)])
            if len(numbers) > 1 and max(numbers) > 1:
                timed.add(node.name)
    return timed


def _read_by(node: Any) -> list[str]:
    """Return the arrays that a node reads, without those that it only waits for."""
    return [source for source in node.input if not source.startswith("^")]


def _array_of(source: str, by_name: Mapping[str, Any]) -> str:
    """Return the array whose memory an input is: a reshaped array is the same memory."""
    name, _, number = source.partition(":")
    node = by_name.get(name)
    if node is not None and node.op in ALIASES:
        return _array_of(_read_by(node)[0], by_name)
    return f"{name}:{number or 0}"


def traced_operations(graph: Any) -> Iterator[tuple[str, Any]]:
    """Yield name and operation, also of the functions that a graph calls: the bodies of loops."""
    for operation in graph.get_operations():
        yield operation.name, operation
        for attribute in operation.node_def.attr.values():
            functions = (attribute.func, *attribute.list.func)
            for name in filter(None, (function.name for function in functions)):
                inner = graph._get_function(name).graph
                if inner is not None:
                    yield from traced_operations(inner)


@dataclass(frozen=True)
class Sources:
    """The lines that created the operations of a graph.

    They are looked up when they are asked for: of thousands of nodes a test names a few.

    Attributes:
        traced: name -> operation of TensorFlow.
    """

    traced: Mapping[str, Any]

    @cached_property
    def _longest_first(self) -> list[str]:
        return sorted(self.traced, key=len, reverse=True)

    def of_node(self, name: str) -> str:
        """Return the line of the longest traced name within a rewritten name.

        A gradient is created where `tape.gradient` is called: the line of the operation that it is
        the gradient of says more.
        """
        if GRADIENT not in name and name in self.traced:
            return source_of(self.traced[name])
        forward, names = name.replace(GRADIENT, ""), self._longest_first
        traced_name = next(
            (
                candidate
                for candidate in names
                if GRADIENT not in candidate and candidate in forward
            ),
            None,
        )
        if traced_name is None or len(traced_name) < len("Mul"):
            traced_name = next((candidate for candidate in names if candidate in name), None)
        return "no line" if traced_name is None else source_of(self.traced[traced_name])


def source_of(operation: Any) -> str:
    """Return the innermost line outside of libraries that created an operation."""
    for frame in reversed(list(operation.traceback or ())):
        if not frame.filename.startswith(LIBRARIES):
            return f"{frame.filename}:{frame.lineno} in {frame.name}"
    return "no line"


def _op_of(node: Any) -> str:
    if node.op == "Const" and node.name.endswith(FOLDED_RECIPROCAL):
        shape = node.attr["value"].tensor.tensor_shape
        if any(dimension.size > 1 for dimension in shape.dim):
            return "Reciprocal"
    return str(node.op)


def _types_of(node: Any) -> frozenset[str]:
    return frozenset(
        tf.dtypes.as_dtype(node.attr[name].type).name
        for name in ("T", "SrcT", "DstT", "dtype", "Tidx")
        if name in node.attr and node.attr[name].type
    )
