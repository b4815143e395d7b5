"""Where things lie, and what the environment says.

One state directory for each host and user holds everything: database, sockets, output,
keeper records, log. `GRASS_HOME` moves all of it. Imported by every command, so it
imports next to nothing; what can be set in `config.toml` is in `settings`.
"""

import os

HOME_VARIABLE = "GRASS_HOME"
AUTOSTART_VARIABLE = "GRASS_AUTOSTART"
BROKER_VARIABLE = "GRASS_BROKER"
LOCAL = "local"
"""The word for this machine's own daemon, where a broker's address may stand."""
CONFIG_NAME = "config.toml"


class Home:
    """The state directory and the files in it."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.socket = os.path.join(folder, "grass.sock")
        self.database = os.path.join(folder, "grass.db")
        self.cluster = os.path.join(folder, "cluster")
        self.daemon_lock = os.path.join(folder, "daemon.lock")
        self.start_lock = os.path.join(folder, "start.lock")
        self.stopped = os.path.join(folder, "stopped")
        self.log = os.path.join(folder, "daemon.log")
        self.worker_id = os.path.join(folder, "worker-id")
        self.brokers = os.path.join(folder, "brokers.json")
        self.brokers_lock = os.path.join(folder, "brokers.lock")
        self.options = os.path.join(folder, "daemon-options.json")
        self.keeper = os.path.join(folder, "keeper")
        self.output = os.path.join(folder, "output")

    def make(self) -> None:
        """Make the directory, for its owner alone."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        for folder in (self.keeper, self.output):
            os.makedirs(folder, mode=0o700, exist_ok=True)


def home() -> Home:
    """Return the state directory that the environment asks for."""
    chosen = os.environ.get(HOME_VARIABLE)
    if chosen:
        return Home(os.path.abspath(os.path.expanduser(chosen)))
    return Home(_usual_folder())


def config_file(home: Home) -> str:
    """Return where this home's settings are read from; the file need not exist.

    A daemon is always started with `GRASS_HOME`, so what decides is not whether that is
    set but whether it names another place than the usual one.
    """
    if home.folder != os.path.abspath(_usual_folder()):
        return os.path.join(home.folder, CONFIG_NAME)
    settings = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.join(settings, "grass", CONFIG_NAME)


def autostart_allowed() -> bool:
    """Tell whether a command may start a daemon by itself."""
    return os.environ.get(AUTOSTART_VARIABLE, "1").lower() not in ("0", "no", "false")


def _usual_folder() -> str:
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.join(state, "grass", os.uname().nodename)
