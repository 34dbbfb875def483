"""Examples of twinlake, one module each; ``twinlake demo`` runs them in order.

Each has a function ``steps(folder)``, or ``steps(folder, spark)`` if it moves rows, that creates
its tables in that folder and yields a `Step` for each change. From a checkout, ``python -m
examples.protocol`` runs one alone. They import nothing but the public names of twinlake.
"""
