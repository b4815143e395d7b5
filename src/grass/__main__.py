"""`python -m grass`, and the file by which a daemon is started.

A daemon is started with `python -I`, which keeps the caller's directory and PYTHONPATH
out of it; then nothing but this file's own place says where the package lies.
"""

import sys

if __name__ == "__main__":
    if sys.flags.isolated:
        sys.path.insert(0, __file__.rpartition("/grass/")[0])
    from grass.cli.main import main

    sys.exit(main())
