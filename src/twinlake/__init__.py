"""twinlake: one table, two formats.

>>> import tempfile, twinlake
>>> t = twinlake.Table.create(tempfile.mkdtemp(), "id INT")
>>> t.version
0
"""

from twinlake.errors import TwinlakeError
from twinlake.table import Table

__all__ = ["Table", "TwinlakeError"]
