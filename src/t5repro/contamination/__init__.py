"""Which evaluated rows have passages of the corpus: methods, search, counts.

`methods` has the published rules as values. `rows` reads the fields of evaluated rows, `texts` the
documents that are searched, `ngrams` finds n-grams, `passages` measures them, `search` goes through
a corpus, `verdicts` applies the methods to the measures. `find` does all of it.
"""
