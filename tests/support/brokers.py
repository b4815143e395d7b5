"""Brokers that share a database: what they tell of each other."""

import json

from tests.support.homes import Document, GrassHome
from tests.support.patience import until


def told(home: GrassHome) -> Document:
    """Return what a broker tells of all of them."""
    found: Document = json.loads(home.ok("brokers", "--json"))
    return found


def await_lead(home: GrassHome, name: str) -> None:
    """Wait until the broker with this name leads."""
    until(lambda: leader_of(home), f"{name} leads", lambda leads: leads == name)


def leader_of(home: GrassHome) -> str:
    """Tell who leads; empty: nobody does at present."""
    ran = home.run("brokers", "--json")
    if ran.returncode != 0:
        assert "no broker leads at present" in ran.stderr
        return ""
    brokers = json.loads(ran.stdout)["brokers"]
    return next((str(one["name"]) for one in brokers if one["leads"]), "")
