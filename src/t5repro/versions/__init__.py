"""Snakemake and DVC: the only package that knows them."""
