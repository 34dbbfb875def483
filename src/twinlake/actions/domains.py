"""Delta's own metadata domains among the actions of a commit or the state of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twinlake.actions.state import DomainMetadata
from twinlake.protocol import (
    CLUSTERING_DOMAIN,
    ICEBERG_DOMAIN,
    ROW_TRACKING_DOMAIN,
    Clustering,
    IcebergAnnotations,
    RowTracking,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "annotations_action",
    "clustering_action",
    "find_annotations",
    "find_clustering",
    "find_row_tracking",
    "row_tracking_action",
]


def find_clustering(domains: Iterable[DomainMetadata]) -> Clustering | None:
    """The clustering that the domains state, without columns if it was removed; None if none does.

    Raises:
        CorruptTable: the configuration is damaged.
    """
    domain = _find(domains, CLUSTERING_DOMAIN)
    if domain is None:
        return None
    return Clustering() if domain.removed else Clustering.parse(domain.configuration)


def find_row_tracking(domains: Iterable[DomainMetadata]) -> RowTracking | None:
    """The mark that the domains state, without ids if it was removed; None if none does.

    Raises:
        CorruptTable: the configuration is damaged.
    """
    domain = _find(domains, ROW_TRACKING_DOMAIN)
    if domain is None:
        return None
    return RowTracking() if domain.removed else RowTracking.parse(domain.configuration)


def find_annotations(domains: Iterable[DomainMetadata]) -> IcebergAnnotations | None:
    """What the domains say of Iceberg snapshots; None if none of them does."""
    domain = _find(domains, ICEBERG_DOMAIN)
    if domain is None:
        return None
    if domain.removed:
        return IcebergAnnotations()
    return IcebergAnnotations.parse(domain.configuration)


def annotations_action(annotations: IcebergAnnotations) -> DomainMetadata:
    """The action that states tags and statistics of Iceberg snapshots."""
    return DomainMetadata(domain=ICEBERG_DOMAIN, configuration=annotations.render(), removed=False)


def clustering_action(clustering: Clustering) -> DomainMetadata:
    """The action that states the clustering."""
    return DomainMetadata(
        domain=CLUSTERING_DOMAIN, configuration=clustering.render(), removed=False
    )


def row_tracking_action(tracking: RowTracking) -> DomainMetadata:
    """The action that states the mark."""
    return DomainMetadata(
        domain=ROW_TRACKING_DOMAIN, configuration=tracking.render(), removed=False
    )


def _find(domains: Iterable[DomainMetadata], name: str) -> DomainMetadata | None:
    return next((domain for domain in domains if domain.domain == name), None)
