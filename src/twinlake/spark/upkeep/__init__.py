"""Operations that move rows without changing them: OPTIMIZE, REORG, rewriting."""
