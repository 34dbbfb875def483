"""Counts of a process in the text format of Prometheus."""

from __future__ import annotations

import os
import threading
from collections import Counter
from typing import Final

__all__ = ["RequestCounters"]

_BUCKETS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0)


class RequestCounters:
    """What one process has answered; every sample names the process, for each counts by itself."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._buckets: Counter[tuple[str, float]] = Counter()
        self._reports: Counter[str] = Counter()
        self.running = 0

    def count_request(self, operation: str, status: int, seconds: float) -> None:
        """One request that was answered."""
        with self._lock:
            self._requests[operation, status] += 1
            self._seconds[operation] += seconds  # type: ignore[assignment]
            for bucket in _BUCKETS:
                if seconds <= bucket:
                    self._buckets[operation, bucket] += 1
                    break

    def count_report(self, kind: str) -> None:
        """One report of a client's metrics."""
        with self._lock:
            self._reports[kind] += 1

    def render(self) -> str:
        """All of it as text."""
        process = f'process="{os.getpid()}"'
        lines = [
            "# TYPE twinlake_requests_total counter",
            "# HELP twinlake_requests_total Requests that were answered.",
        ]
        with self._lock:
            requests, seconds = sorted(self._requests.items()), dict(self._seconds)
            buckets, reports = dict(self._buckets), sorted(self._reports.items())
        for (operation, status), count in requests:
            lines.append(
                f'twinlake_requests_total{{operation="{operation}",status="{status}",{process}}} '
                f"{count}"
            )
        lines += [
            "# TYPE twinlake_request_seconds histogram",
            "# HELP twinlake_request_seconds How long answering took.",
        ]
        for operation, total in sorted(seconds.items()):
            label = f'operation="{operation}",{process}'
            count = sum(n for (name, _), n in requests if name == operation)
            below = 0
            for bucket in _BUCKETS:
                below += buckets.get((operation, bucket), 0)
                lines.append(f'twinlake_request_seconds_bucket{{{label},le="{bucket}"}} {below}')
            lines.append(f'twinlake_request_seconds_bucket{{{label},le="+Inf"}} {count}')
            lines.append(f"twinlake_request_seconds_sum{{{label}}} {total:.6f}")
            lines.append(f"twinlake_request_seconds_count{{{label}}} {count}")
        lines += [
            "# TYPE twinlake_requests_running gauge",
            f"twinlake_requests_running{{{process}}} {self.running}",
            "# TYPE twinlake_client_reports_total counter",
            "# HELP twinlake_client_reports_total Reports of scans and commits from clients.",
        ]
        for kind, count in reports:
            lines.append(f'twinlake_client_reports_total{{kind="{kind}",{process}}} {count}')
        return "\n".join(lines) + "\n"
