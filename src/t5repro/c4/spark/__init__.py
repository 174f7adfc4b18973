"""The rules `c4_clean`, `c4_dedup` and `c4` on Apache Spark, with the bytes of one machine.

`steps` has one function per rule; `kernels` and `dedup` contain the code that runs on the workers,
`rows` the types of both sides, `frames` and `session` the calls of Spark.
"""
