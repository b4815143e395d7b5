"""Makes the environment of these tests: `python environment.py .venv/gpu`.

It sees the packages of the Python that runs this, so that torch need not be installed
twice. Everything else comes from `wheels/` where that folder exists, else from the
network. Only the standard library: nothing is installed yet.
"""

import subprocess
import sys
import tomllib
import venv
import zipfile
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WHEELS = ROOT / "wheels"
TOOLS = ["psutil", "pytest", "pytest-timeout"]


def make(folder: Path) -> None:
    """Make the environment, unless it is there and newer than what it is made of."""
    done = folder / ".done"
    sources = [ROOT / "pyproject.toml", *WHEELS.glob("*.whl")]
    if done.exists() and all(
        one.stat().st_mtime <= done.stat().st_mtime for one in sources
    ):
        return
    venv.EnvBuilder(symlinks=True, with_pip=False, clear=True).create(folder)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = folder / "lib" / version / "site-packages"
    seen = [path for path in sys.path if path.endswith(("site-packages", "-packages"))]
    (site / "grass.pth").write_text("\n".join([str(ROOT / "src"), *seen]) + "\n")
    install(site)
    done.touch()


def install(site: Path) -> None:
    """Install what grass needs, and the tools of the tests."""
    wheels = sorted(map(str, WHEELS.glob("*.whl")))
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(site)]
    if wheels and find_spec("pip") is None:
        for wheel in wheels:
            zipfile.ZipFile(wheel).extractall(site)
    elif wheels:
        subprocess.run([*pip, "--no-index", "--no-deps", *wheels], check=True)
    else:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())
        needed = project["project"]["dependencies"]
        subprocess.run([*pip, *needed, *TOOLS], check=True)


if __name__ == "__main__":
    make(Path(sys.argv[1]).absolute())
