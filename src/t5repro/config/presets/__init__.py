"""Presets: named fragments of settings, each with its source in the papers or their released code.

A run file, the change of an experiment or a group of tasks names presets in `use`. `table` has the
groups of presets, each a module with one dictionary; `apply` sets their values.
"""
