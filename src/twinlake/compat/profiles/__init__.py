"""The same rules as other implementations check them: Delta Spark and the Java kernel."""
