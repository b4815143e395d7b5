"""Templates of the tests: around a queue of this host, and around Slurm's commands."""

import sys
import tomllib
from pathlib import Path

from grass.model.command_templates import CommandTemplate, template_from
from tests.support import local_queue

QUEUE = """
[submit]
command = [{queue}, "submit", "--name={{name}}", "--mark={{mark}}", "--gpus={{gpus}}",
  "--output={{output}}", "--directory={{directory}}", "{{options}}"]
script = '''
#!/bin/sh
{{setup}}
exec {{command}}
'''
id = 'queued as job (\\d+)'

[check]
command = [{queue}, "check", "--gpus={{gpus}}"]

[status]
command = [{queue}, "list"]
answer = '^ID\\|'
id = '^(\\d+)\\|'
state = '^\\d+\\|(\\w+)'
mark = '\\|(\\w+)$'

[states]
pending = ["waits"]
running = ["runs"]
ended = ["over"]

[cancel]
command = [{queue}, "cancel", "{{ids}}"]
over = ["is over"]
"""
SLURM = """
[submit]
command = ["sbatch", "--parsable"]
script = '''
#!/bin/sh
#SBATCH --job-name={name}
#SBATCH --comment={mark}
#SBATCH --time={time_minutes}
#SBATCH --cpus-per-task={cpus}
#SBATCH --mem={memory_mib}M
#SBATCH --gres=gpu:{gpus}
#SBATCH --chdir={directory}
#SBATCH --output={output}
#SBATCH --no-requeue
#SBATCH {options}
{setup}
exec {command}
'''
id = '^(\\d+)'
no_answer = ["Socket timed out", "Unable to contact"]

[check]
command = ["sbatch", "--test-only"]

[status]
command = ["squeue", "-t", "all", "-n", "{name}", "-o", "%i|%T|%k|%r"]
answer = '^JOBID\\|'
id = '^(\\d+)\\|'
state = '^\\d+\\|(\\w+)'
mark = '^\\d+\\|\\w+\\|(\\w+)'
reason = '\\|([^|]+)$'

[states]
pending = ["PENDING", "CONFIGURING"]
running = ["RUNNING", "COMPLETING"]
ended = ["COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED"]

[cancel]
command = ["scancel", "{ids}"]
over = ["Invalid job id"]
"""


def queue_text(folder: Path) -> str:
    """Return the template of a queue that keeps its jobs in a folder."""
    words = (sys.executable, "-I", local_queue.__file__, str(folder))
    return QUEUE.format(queue=", ".join(f'"{word}"' for word in words))


def template(text: str) -> CommandTemplate:
    return template_from(tomllib.loads(text))
