"""Operations of TensorFlow and NumPy, hashed to tell whether a CPU computes like others (D-043).

Nothing that trains or decodes imports this package, so a change of it reruns no rule.
"""
