"""Paths of the state directory, and what surrounds a command: its environment.

One state directory for each host and user holds everything: database, sockets, output,
keeper records, log. `GRASS_HOME` moves all of it. Imported by every command, so it
imports next to nothing; what can be set in `config.toml` is in `settings`.
"""

import os

from grass.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

HOME_VARIABLE = "GRASS_HOME"
AUTOSTART_VARIABLE = "GRASS_AUTOSTART"
BROKER_VARIABLE = "GRASS_BROKER"
LOCAL = "local"
"""The word for this machine's own daemon, where a broker's address may stand."""
CONFIG_NAME = "config.toml"
OWN_HEADER = "Grass-Own"
"""Of a request to a daemon about itself, whichever broker leads."""
KEY_FILE = "broker.key"
"""The brokers' private key, in the state directory."""
API_PREFIX = "/api/v1"
"""Every path of the API begins with it."""

MARKER = "GRASS_ATTEMPT_ID"
"""In every process of a job, so that it is found again whatever became of it."""
CHANNEL_VARIABLE = "GRASS_CHANNEL"
"""Where a job with a channel listens for the program that enqueued it."""
OWN_PORT = "GRASS_MASTER_PORT"
"""The port that grass chose for a job, where it also set MASTER_PORT."""
RENDEZVOUS = "127.0.0.1"
SETTINGS = (
    *("GRASS_HOME", "GRASS_BROKER", "GRASS_AUTOSTART"),
    # Not as a group: a job with a resource `gpu_x` has a GRASS_GPU_X.
    *("GRASS_GPU_GUARD", "GRASS_GPU_STRANGERS", "GRASS_GPU_JOBS", "GRASS_GPU_BUSY"),
    *("GRASS_GPU_ACKNOWLEDGE_AFTER", "GRASS_NOTIFY_ON_GPU_FAULT"),
    *("GRASS_TASKS_PYTHON", "GRASS_TASKS_LARGEST", "GRASS_TASKS_UNNAMED"),
    "GRASS_TASKS_KEEP",
)
SETTING_GROUPS = (
    *("GRASS_DEFAULT_", "GRASS_RETENTION_", "GRASS_STORE_", "GRASS_NOTIFY_"),
    "GRASS_LOG_",
)
"""Settings of the user, which hold inside a job as well."""
_OF_SLURM = """
SLURMD_NODENAME
SLURM_ARRAY_JOB_ID SLURM_ARRAY_TASK_COUNT SLURM_ARRAY_TASK_ID SLURM_ARRAY_TASK_MAX
SLURM_ARRAY_TASK_MIN SLURM_ARRAY_TASK_STEP SLURM_CPUS_ON_NODE SLURM_CPUS_PER_TASK
SLURM_GPUS SLURM_GPUS_ON_NODE SLURM_GPUS_PER_NODE SLURM_GPUS_PER_TASK SLURM_GTIDS
SLURM_JOBID SLURM_JOB_CPUS_PER_NODE SLURM_JOB_GPUS SLURM_JOB_ID SLURM_JOB_NAME
SLURM_JOB_NODELIST SLURM_JOB_NUM_NODES SLURM_JOB_PARTITION SLURM_LOCALID
SLURM_MEM_PER_CPU SLURM_MEM_PER_GPU SLURM_MEM_PER_NODE SLURM_NNODES SLURM_NODEID
SLURM_NODELIST SLURM_NPROCS SLURM_NTASKS SLURM_PROCID SLURM_RESTART_COUNT
SLURM_SUBMIT_DIR SLURM_SUBMIT_HOST SLURM_TASKS_PER_NODE
"""
SLURM_VARIABLES = frozenset(_OF_SLURM.split())
"""The variables of Slurm that a job has whose script has `#SBATCH` lines."""
SECRETS = ("GRASS_CERT_PASS",)
"""For the daemon alone: never stored, and in no job's environment."""


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
        self.crash_report = os.path.join(folder, "crash-report.txt")
        self.worker_id = os.path.join(folder, "worker-id")
        self.brokers = os.path.join(folder, "brokers.json")
        self.own_cluster = os.path.join(folder, "own-cluster.json")
        self.brokers_lock = os.path.join(folder, "brokers.lock")
        self.options = os.path.join(folder, "daemon-options.json")
        self.web = os.path.join(folder, "web.json")
        self.pilot_folders = os.path.join(folder, "pilot-folders.json")
        self.keeper = os.path.join(folder, "keeper")
        self.output = os.path.join(folder, "output")
        self.blobs = os.path.join(folder, "blobs")
        """What jobs of this home's own broker name; its worker reads them there."""
        self.fetched_blobs = os.path.join(folder, "fetched-blobs")
        """What this machine's worker fetched from the broker of another one."""

    def make(self) -> None:
        """Make the directory, for its owner alone."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        for folder in (self.keeper, self.output):
            os.makedirs(folder, mode=0o700, exist_ok=True)


def has_queue(home: Home) -> bool:
    """Tell whether a broker has run in this home, wherever its database is."""
    return os.path.exists(home.database) or os.path.exists(home.cluster)


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


def user_environment(environment: "Mapping[str, str]") -> dict[str, str]:
    """Drop what a surrounding job of grass has set."""
    if MARKER in environment:
        return without_job_variables(environment)
    return {name: one for name, one in environment.items() if name not in SECRETS}


def without_job_variables(environment: "Mapping[str, str]") -> dict[str, str]:
    """Keep of what grass has set only the user's settings."""
    left = {
        name: value
        for name, value in environment.items()
        if not name.startswith("GRASS_")
        or name in SETTINGS
        or name.startswith(SETTING_GROUPS)
    }
    if environment.get("SLURM_JOB_ID", "") == environment.get("GRASS_JOB_ID"):
        left = {name: left[name] for name in left if name not in SLURM_VARIABLES}
    port = environment.get(OWN_PORT)
    if port is not None and left.get("MASTER_PORT") == port:
        # Those of a surrounding job; a job inside it has its own.
        del left["MASTER_PORT"]
        if left.get("MASTER_ADDR") == RENDEZVOUS:
            del left["MASTER_ADDR"]
    return left


def _usual_folder() -> str:
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.join(state, "grass", os.uname().nodename)


def caller_directory() -> str:
    """Return the current directory."""
    try:
        return os.getcwd()
    except OSError:
        raise UsageError(
            "the current directory does not exist any more", "change to one that does"
        ) from None


def caller_umask() -> int:
    """Return the umask, as the kernel tells it.

    To read it by setting it concerns files that other threads make meanwhile, so that
    is done only where `/proc` does not tell.
    """
    try:
        with open("/proc/self/status", "rb") as file:
            return int(file.read().partition(b"\nUmask:")[2].split(None, 1)[0], 8)
    except (OSError, IndexError):
        mask = os.umask(0o077)
        os.umask(mask)
        return mask
