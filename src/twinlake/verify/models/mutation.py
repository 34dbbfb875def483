"""What small models share: mutants, which are deliberate mistakes, and writers as only actors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from twinlake.verify.checker import Model, ModelError, Role

__all__ = ["MutantModel", "WriterModel"]


@dataclass(frozen=True, kw_only=True)
class MutantModel(Model):
    """A model that knows deliberate mistakes, to see whether they are caught."""

    #: The mistakes it knows; ``None`` is the model as designed.
    mutants: ClassVar[tuple[str | None, ...]] = (None,)

    mutant: str | None = None

    def __post_init__(self) -> None:
        if self.mutant not in self.mutants:
            raise ModelError(f"mutant={self.mutant!r} is no mutant of {self.title}")


@dataclass(frozen=True, kw_only=True)
class WriterModel(MutantModel):
    """A model whose only actors are writers."""

    writers: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.writers < 1:
            raise ModelError("writers must be at least 1")

    @property
    def roles(self) -> tuple[Role, ...]:
        """The writers."""
        return (Role(name="Writer", count=self.writers),)
