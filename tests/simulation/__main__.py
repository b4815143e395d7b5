"""`python -m tests.simulation SEED [broker|brokers]` prints the trace of one seed."""

import sys

from tests.simulation.runner import run_brokers_seed, run_seed

run = run_brokers_seed if sys.argv[2:] == ["brokers"] else run_seed
result = run(int(sys.argv[1]), tail=100_000)
sys.stdout.write("\n".join(result.tail) + "\n")
verdict = result.problem or "passed"
sys.stdout.write(f"seed {result.seed}: {verdict}\n")
sys.stdout.write(f"{result.events} events, {dict(result.faults)}\n")
sys.stdout.write(f"trace {result.trace_hash}\n")
sys.exit(1 if result.problem else 0)
