"""The steps of the corpus on Apache Spark."""
