"""Lets Snakemake compare the parameters of rules without pandas.

Snakemake imports pandas, if it is installed, to ask whether a parameter is a data frame (Snakemake
9.27, `PersistenceBase._serialize_param`). That takes as long as to plan the whole graph (upstream
issue 4220 is about such imports). The parameters of rules of this project are texts, numbers and
lists, which it writes the same way without pandas.
"""


def compare_params_without_pandas() -> None:
    """Make Snakemake treat parameters as it does where pandas is not installed."""
    from snakemake.persistence import PersistenceBase

    PersistenceBase._serialize_param = PersistenceBase._serialize_param_builtin
