"""Entry point of a pilot: `python -I -S .../pilot.py FILE`, with the standard library.

A file that is run is compiled each time, so it only loads `pilot_process`.
"""

import gc
import os
import sys

if __name__ == "__main__":
    package = os.path.dirname(
        os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    )
    sys.path.append(os.path.dirname(package))
    # Nothing that is loaded is garbage, and the process does little more.
    gc.disable()
    from grass.daemon.pools.pilot_process import main

    sys.exit(main(sys.argv[1]))
