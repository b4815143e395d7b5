"""The calls of the API that are not about jobs: queues, workers, profiles, tokens."""

from __future__ import annotations

import time

from grass.client.broker_session import BrokerSession
from grass.client.connection import RawBody
from grass.client.json_codec import query, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from grass.client.json_codec import Document


class ClusterClient(BrokerSession):
    """One method for each of these calls."""

    def missing_blobs(self, names: Sequence[str]) -> Document:
        """Return which of the blobs are `missing`, and how `largest` one may be."""
        return self.idempotent("POST", "/blobs/missing", {"names": list(names)})

    def add_blob(self, name: str, pieces: Sequence[bytes | memoryview]) -> Document:
        """Upload a blob, whose name is the SHA-256 of its bytes."""
        body = RawBody(pieces)
        return self.repeat(
            lambda: self.once("PUT", f"/blobs/{name}", body, may_last=True)
        )

    def queue(self, name: str) -> Document:
        """Read a queue's name, prefix and whether it is paused."""
        return self.read(f"/queues/{quoted(name)}")

    def create_queue(self, name: str, body: Document) -> Document:
        """Create a queue; the same again is fine."""
        return self.idempotent("PUT", f"/queues/{quoted(name)}", body)

    def edit_queue(self, name: str, body: Document) -> Document:
        """Change a queue, and this daemon's view of it; the same again is fine."""
        return self.idempotent("PATCH", f"/queues/{quoted(name)}", body)

    def delete_queue(self, name: str) -> Document:
        """Remove a queue that has no unfinished jobs."""
        return self.write("DELETE", f"/queues/{quoted(name)}")

    def pause(self, queue: str | None = None) -> Document:
        """Start no more jobs, of one queue or of all."""
        return self.write("POST", "/pause", {"queue": queue})

    def resume(
        self,
        queue: str | None = None,
        unit: str | None = None,
        worker: str | None = None,
    ) -> Document:
        """Start jobs again: of a queue, on a drained unit, or everywhere."""
        body = {"queue": queue, "unit": unit, "worker": worker}
        return self.write("POST", "/resume", body)

    def drain(self, unit: str, worker: str | None = None) -> Document:
        """Start nothing new on a unit; running jobs finish."""
        return self.write("POST", "/drain", {"unit": unit, "worker": worker})

    def add_capacity(
        self, capacity: str | Document, worker: str | None = None
    ) -> Document:
        """Add units to a worker besides those that were found."""
        body = {"capacity": capacity, "worker": worker}
        return self.write("POST", "/capacity/add", body)

    def remove_capacity(self, unit: str, worker: str | None = None) -> Document:
        """Remove a unit that was added, once no attempt holds it."""
        body = {"unit": unit, "worker": worker}
        return self.write("POST", "/capacity/remove", body)

    def workers(self) -> Document:
        """Read the workers: address, capacity, when they were last connected."""
        return self.read("/workers")

    def brokers(self) -> Document:
        """Read the brokers of the cluster: who leads, and who stands by."""
        return self.read("/brokers")

    def timeline(self, since_s: float, *, worker: str | None = None) -> Document:
        """Read who held which units since so many seconds ago: lanes, bars, totals."""
        begin = time.gmtime(max(0, time.time() - since_s))
        asked = {"from": time.strftime("%Y-%m-%dT%H:%M:%SZ", begin), "worker": worker}
        return self.read("/timeline" + query(totals=1, **asked))

    def doctor(self) -> Document:
        """Read what `grass doctor` finds on the machine of the daemon."""
        return self.read("/doctor")

    def devices(self) -> Document:
        """Read the GPUs of all workers: memory, and who is on them."""
        return self.read("/devices")

    def forget_worker(self, name: str) -> Document:
        """Forget a worker that is gone for good; what ran there is lost."""
        return self.write("DELETE", f"/workers/{quoted(name)}")

    def end_foreign(self, name: str, attempts: list[str]) -> Document:
        """Stop attempts that a worker runs and the database knows nothing of.

        `["all"]` are those of this cluster; those of another are named.
        """
        path = f"/workers/{quoted(name)}/foreign/end"
        return self.write("POST", path, {"attempts": attempts})

    def keep_foreign(self, name: str, attempts: list[str]) -> Document:
        """Let such attempts run to their end, without further reminders."""
        path = f"/workers/{quoted(name)}/foreign/keep"
        return self.write("POST", path, {"attempts": attempts})

    def drain_worker(self, name: str, on: bool = True) -> Document:
        """Start nothing new on a worker; with `on=False`, start jobs there again."""
        return self.write("POST", f"/workers/{quoted(name)}/drain", {"on": on})

    def profiles(self, job_type: str | None = None) -> Document:
        """Read what is known of job types, or of one with its samples."""
        wanted = "" if job_type is None else f"?type={quoted(job_type)}"
        return self.read(f"/profiles{wanted}")

    def export_profiles(self) -> Document:
        """Read all profiles as `text`, in lines."""
        return self.read("/profiles/export")

    def import_profiles(self, text: str) -> Document:
        """Take over exported profiles; an error names the line, and changes nothing."""
        return self.write("POST", "/profiles/import", {"text": text})

    def forget_profiles(self, types: Sequence[str]) -> Document:
        """Forget what is known of job types."""
        return self.write("POST", "/profiles/forget", {"types": list(types)})

    def tokens(self) -> Document:
        """Read the valid tokens and codes, without their secrets."""
        return self.read("/tokens")

    def new_token(
        self,
        role: str | None = None,
        name: str | None = None,
        hours: float | None = None,
        *,
        code: bool = True,
    ) -> Document:
        """Make a `code` to join with, or a `token`; only this reply contains it."""
        body: Document = {"name": name, "hours": hours, "code": code}
        if role is not None:
            body["role"] = role
        return self.write("POST", "/tokens", body)

    def revoke_token(self, name: str) -> Document:
        """Revoke a token or code; its connections are closed."""
        return self.write("DELETE", f"/tokens/{quoted(name)}")

    def pools(self) -> Document:
        """List pools with their pilots."""
        return self.read("/pools")

    def add_pool(self, body: Document) -> Document:
        """Add a pool; its engine is asked whether it would take its workers."""
        return self.write("POST", "/pools", body)

    def pause_pool(self, name: str) -> Document:
        """Ask for no more workers of a pool."""
        return self.write("POST", f"/pools/{quoted(name)}/pause")

    def resume_pool(self, name: str) -> Document:
        """Ask for workers of a pool again."""
        return self.write("POST", f"/pools/{quoted(name)}/resume")

    def ask_for_workers(self, pool: str, count: int) -> Document:
        """Ask the engine of a pool for workers now."""
        return self.write("POST", f"/pools/{quoted(pool)}/pilots", {"count": count})

    def pool_logs(self, pool: str) -> Document:
        """Read what the workers of a pool printed, and what its engine says."""
        return self.read(f"/pools/{quoted(pool)}/logs")

    def pool_script(self, pool: str) -> Document:
        """Show what the engine of a pool is given for one worker."""
        return self.read(f"/pools/{quoted(pool)}/script")

    def script_of(self, body: Document) -> Document:
        """Show what the engine of a pool that is not added would be given."""
        return self.write("POST", "/pools/script", body)

    def send_away(self, worker: str) -> Document:
        """Have a worker of a pool leave once its jobs have ended."""
        return self.write("DELETE", f"/pilots/{quoted(worker)}")

    def remove_pool(self, name: str) -> Document:
        """Have the workers of a pool leave, and forget it."""
        return self.write("DELETE", f"/pools/{quoted(name)}")

    def join(
        self,
        code: str,
        name: str,
        worker: str,
        instance: str,
        *,
        standby: bool = False,
    ) -> Document:
        """Exchange a code for a token of this machine's own; done twice, it renews."""
        body: dict[str, object] = {"code": code, "name": name, "worker": worker}
        body["instance"] = instance
        if standby:
            body["standby"] = True
        return self.idempotent("POST", "/join", body)

    def session(self) -> Document:
        """Read who this client is to the daemon, and what it may do."""
        return self.read("/session")

    def open_web(
        self, host: str | None = None, port: int | None = None, role: str = "admin"
    ) -> Document:
        """Serve the dashboard; the reply's `url` logs one browser in."""
        body = {"host": host, "port": port, "role": role}
        return self.write("POST", "/web", body)

    def close_web(self) -> Document:
        """Serve the dashboard no more, and log every browser out."""
        return self.idempotent("DELETE", "/web")

    def config(self) -> Document:
        """Read the daemon's own settings."""
        return self.read("/config")

    def stop(self, *, jobs: bool = False) -> Document:
        """Stop the daemon; `jobs` ends the running ones first."""
        return self.write("POST", "/daemon/stop", {"jobs": jobs})
