"""Lets Snakemake find who writes a file without comparing its name with every output.

Snakemake compares a name with all outputs that begin alike, one regular expression after the other,
and asks again for each job that reads the file (Snakemake 9.27, `OutputIndex.match_producers`). A
thousand jobs that read the same lists, and rules with a thousand outputs, made that nine tenths of
a plan's time (upstream issue 598). Here outputs are found by how they end as well, and each name is
looked up once.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from snakemake.common.prefix_lookup import PrefixLookup

Suffixes = dict[str, list[tuple[Any, Any]]]  # end of outputs -> rules and their outputs


class QuickOutputIndex:
    """An index with the answers of Snakemake's.

    Args:
        rules: rules of Snakemake with all their outputs.
    """

    def __init__(self, rules: Iterable[Any]) -> None:
        begins: defaultdict[str, Suffixes] = defaultdict(lambda: defaultdict(list))
        for rule in rules:
            for product in rule.products():
                prefix, suffix = str(product.constant_prefix()), str(product.constant_suffix())
                begins[prefix][suffix].append((rule, product))
        self._lookup = PrefixLookup(
            [(prefix, (ends, sorted(set(map(len, ends))))) for prefix, ends in begins.items()]
        )
        self._producers: dict[str, set[Any]] = {}

    def match_producers(self, targetfile: str) -> set[Any]:
        """Return the rules that write a file."""
        if targetfile not in self._producers:
            self._producers[targetfile] = {
                rule
                for rule, product in self._candidates(targetfile)
                if writes(product, targetfile)
            }
        return self._producers[targetfile]

    def _candidates(self, targetfile: str) -> Iterable[tuple[Any, Any]]:
        for _, (suffixes, lengths) in self._lookup.match_iter(targetfile):
            for length in lengths:
                yield from suffixes.get(targetfile[len(targetfile) - length :], ())


def writes(product: Any, targetfile: str) -> bool:
    """Return whether a file is an output of a rule, with a regular expression only if it may be.

    Snakemake compiles one for each output, of which most have no wildcards.
    """
    return str(product) == targetfile or bool(
        product.contains_wildcard() and product.match(targetfile)
    )


def contains(files: Any, file: Any) -> bool:
    """Return whether a file is one of a job's inputs, which Snakemake compares one by one.

    Snakemake asks it for each output that is needed: whether its job reads what it writes.
    """
    size, names = vars(files).get("_looked_up", (-1, frozenset()))
    if size != len(files):
        size, names = files._looked_up = (len(files), frozenset(files))
    return file in names


def use_quick_output_index() -> None:
    """Make Snakemake look up outputs by both ends of their names, and inputs by their hashes."""
    import snakemake.dag
    from snakemake.iocontainers import InputFiles

    snakemake.dag.OutputIndex = QuickOutputIndex
    InputFiles.__contains__ = contains
