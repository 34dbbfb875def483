"""The data plane: tables read, written, changed and rewritten on Spark, through PySpark alone."""
