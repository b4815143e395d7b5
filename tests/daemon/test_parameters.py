"""Parameters: each job runs with values of its own."""

import json

import pytest

from tests.support.homes import GrassHome

pytestmark = pytest.mark.daemon


def test_every_combination_runs_with_its_values(shared: GrassHome) -> None:
    line = 'echo "$1 $2 $GRASS_PARAM_1 $MINE" "$GRASS_NAME"'
    ids = shared.enqueue_array(
        "--name", "fit-{1}-{index}", "--env", "MINE=m{2}", "--output", "{name}.out",
        "--", "sh", "-c", line, "sh", "{1}", "{2}", ":::", "a;b", "c", ":::", "1", "2",
    )  # fmt: skip
    assert shared.wait(*ids)["state"] == "succeeded"
    assert len(ids) == 4
    written = (shared.desk / "fit-a;b-2.out").read_text()
    assert written == "a;b 2 a;b m2 fit-a;b-2\n"
    assert shared.logs(ids[2]) == "c 1 c m1 fit-c-3\n"
    told = shared.run("show", str(ids[0])).stdout
    assert "parameters  1='a;b' 2=1\n" in told
    found = shared.run(
        "show", "name~^fit-c-4$", "--members", "--columns", "id,params"
    ).stdout
    assert f"{ids[3]} [4]" in found
    assert "1=c 2=2" in found


def test_lines_of_a_file_are_values_of_a_template(shared: GrassHome) -> None:
    words = ("enqueue", "--from", "-", "--", "echo {2}; echo {1}")
    added = shared.run(*words, input="$(x)\ttwo words\nb\tc\n")
    first, last = (int(id) for id in added.stdout.split("-"))
    shared.wait(first, last)
    assert shared.logs(first) == "two words\n$(x)\n"
    assert shared.logs(last) == "c\nb\n"
    refused = shared.run(
        "enqueue", "--from", "-", "--", "echo '{1}'", input="a\n\nb c\n"
    )
    assert refused.stderr.startswith("grass enqueue: stdin, line 3: `{1}` stands in")


def test_braces_and_marks_are_left_alone_where_there_are_no_values(
    shared: GrassHome,
) -> None:
    alone = shared.enqueue("--", "echo", "{}", "{1}", "{index}")
    raw = shared.enqueue("--raw", "--", "echo", "{}", ":::", "a")
    shared.wait(alone, raw)
    assert shared.logs(alone) == "{} {1} {index}\n"
    assert shared.logs(raw) == "{} ::: a\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--array", "1-3", "--", "x", ":::", "1"], "--array and ::: both"),
        (["--from", "x", "--", "x", ":::", "1"], "--from and ::: both"),
        (["--from", "x", "--array", "1-2", "--", "x"], "--array and --from both"),
        (["--", ":::", "1"], "no command was given"),
        (["--at-most", "3", "--", "true"], "--at-most goes with"),
    ],
)
def test_a_command_that_says_too_much_or_too_little_adds_no_job(
    shared: GrassHome, words: list[str], said: str
) -> None:
    refused = shared.run("enqueue", *words)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert said in refused.stderr


def test_a_dry_run_says_what_would_be_added_and_adds_nothing(shared: GrassHome) -> None:
    before = shared.client.overview()["daemon"]["jobs"]
    words = ("--name", "n-{1}-{id}", "--", "echo", "{1}", ":::", *map(str, range(25)))
    told = shared.ok("enqueue", "--dry-run", *words).splitlines()
    assert told[0].split() == ["NAME", "QUEUE", "NEEDS", "COMMAND"]
    assert told[1].split() == ["n-0-{id}", "default", "cpu", "1", "echo", "0"]
    assert told[-2:] == ["... and 5 more", "25 jobs would be enqueued; nothing was"]
    plan = json.loads(shared.ok("enqueue", "--dry-run", "--format", "json", *words))
    assert plan["count"] == len(plan["jobs"]) == 25
    assert plan["jobs"][24]["params"] == {"1": "24"}
    assert plan["jobs"][24]["command"] == ["echo", "24"]
    refused = shared.run("enqueue", "--dry-run", "-c", "999", "--", "true")
    assert refused.returncode == 6
    unknown = shared.run("enqueue", "--dry-run", "--after", "99999", "--", "true")
    assert unknown.returncode == 4
    assert shared.client.overview()["daemon"]["jobs"] == before
    added = shared.enqueue("--", "true")
    assert shared.client.job(added)["id"] == shared.client.job("last")["id"]


def test_json_without_a_request_points_to_the_option_that_prints_it(
    shared: GrassHome,
) -> None:
    refused = shared.run("enqueue", "--json", "--", "true")
    assert refused.returncode == 2
    assert "--format json" in refused.stderr
