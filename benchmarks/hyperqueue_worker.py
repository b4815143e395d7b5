"""A worker of HyperQueue in an allocation that HyperQueue's server asked Slurm for.

The script of such an allocation runs `WRAP HQ worker start OPTIONS...`. There is no
`hq` in the package for Python, so this file is the wrap, with the path of the package's
extension module, and does in place of the rest what that would: it starts a worker.

The worker is HyperQueue's own. Its package starts one only for a server of the same
process, so that a server is started here, too, which nobody uses: the worker reads the
address of the other one. Nothing but the extension is imported, for a quick start.

A worker of `hq` would tell the number of its allocation, too. To the queue this one's
allocation goes on waiting, which counts the same against the most that it may have.
"""

import signal
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any


def main(extension: str, options: list[str]) -> None:
    """Work for the server that the options name until Slurm ends the allocation."""
    own = Path.cwd() / "cluster"
    cluster = _loaded(extension).cluster_start(str(own))
    current = own / "hq-current"
    current.unlink()
    current.symlink_to(_option(options, "--server-dir"))
    cluster.add_worker(int(_option(options, "--cpus")))
    signal.pause()


def _loaded(extension: str) -> Any:
    loader = ExtensionFileLoader("hyperqueue", extension)
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def _option(options: list[str], name: str) -> str:
    return options[options.index(name) + 1]


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
