"""Entry point: `python -I -S .../grass/keeper/__main__.py DIRECTORY [OPTIONS]`.

Isolated mode leaves the import path without grass, so the folder that holds the
package is put there first.
"""

import gc
import os
import sys

if __name__ == "__main__":
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path.insert(0, os.path.dirname(package))
    # Nothing that is loaded is garbage; it is enabled once the keeper is ready.
    gc.disable()
    from grass.keeper.system.keeper_process import main

    sys.exit(main(sys.argv[1:]))
