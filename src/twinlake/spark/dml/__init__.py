"""Operations that change rows: write, DELETE, UPDATE, MERGE, and their way to a commit."""
