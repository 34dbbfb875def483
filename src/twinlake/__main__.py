"""``python -m twinlake``."""

from twinlake.cli import main

if __name__ == "__main__":
    main()
