"""`streamwatch inspect` on files: settings on stdout, everything else on stderr, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from streamwatch.assembly.inspection import (
    inspect,
    kafka_written,
    read_files,
    sampling_settings,
    sections_written,
)
from streamwatch.cli import app
from streamwatch.settings import Settings, load
from streamwatch.settings.loading import parse
from tests.commands import CliRunner
from tests.inspection.payloads.ids import int_and_text, upper_case_ids
from tests.inspection.story import Maker, story


@pytest.fixture
def streamwatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    """Runs commands in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return CliRunner()


def files(make: Maker) -> list[str]:
    """Arguments that name a file of JSON lines for each topic."""
    arguments: list[str] = []
    for topic, records in make().sort().topics.items():
        file = Path(f"{topic}.jsonl")
        file.write_bytes(b"\n".join(record.value or b"" for record in records))
        arguments += ["--file", str(file)]
    return arguments


def test_stdout_is_nothing_but_settings_that_load(streamwatch: CliRunner) -> None:
    result = streamwatch.invoke(app, ["inspect", *files(int_and_text)])
    assert result.exit_code == 0, result.stderr
    settings = Settings(**parse(result.stdout))
    assert settings.topics.predictions[0].mapping.id == "value.order.number"
    assert "join rate of the sample: 400 of 400 predictions (100.0%)" in result.stderr
    assert "examples of joined pairs" in result.stderr


def test_a_file_is_written_once_and_replaced_only_by_force(streamwatch: CliRunner) -> None:
    asked = ["inspect", *files(int_and_text), "--write", "streamwatch.yaml"]
    assert streamwatch.invoke(app, asked).exit_code == 0
    assert load(Path("streamwatch.yaml")).topics.labels[0].name == "returns"
    again = streamwatch.invoke(app, asked)
    assert again.exit_code == 2
    assert again.output == "--write: streamwatch.yaml exists; --force replaces it\n"
    long = streamwatch.invoke(app, [*asked[:-1], "x" * 300])
    assert long.exit_code == 2
    assert long.output.endswith(" cannot be written: File name too long\n")
    assert streamwatch.invoke(app, [*asked, "--force"]).exit_code == 0


def test_what_cannot_be_guessed_is_stated_with_exit_code_1_and_no_settings(streamwatch: CliRunner) -> None:
    result = streamwatch.invoke(app, ["inspect", *files(upper_case_ids)])
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "ids differ in upper and lower case" in result.stderr


def test_cells_of_csv_are_looked_at_as_numbers(streamwatch: CliRunner) -> None:
    items = story(601)
    scored = [f"{item.number + 100},{item.predicted},{item.score}" for item in items]
    Path("scored.csv").write_text("\n".join(["case_no,decision,probability", *scored]))
    Path("closed.csv").write_text(
        "\n".join(["case_no,result", *(f"{i.number + 100},{i.true}" for i in items)])
    )
    result = streamwatch.invoke(app, ["inspect", "--file", "scored.csv", "--file", "closed.csv"])
    assert result.exit_code == 0, result.stderr
    [topic] = Settings(**parse(result.stdout)).topics.predictions
    assert (topic.mapping.id, topic.mapping.prediction) == ("value.case_no", "value.decision")


@pytest.mark.parametrize("arguments", [[], ["--topic", "a", "--file", "b.jsonl"]])
def test_topics_or_files_are_needed_and_not_both(streamwatch: CliRunner, arguments: list[str]) -> None:
    result = streamwatch.invoke(app, ["inspect", *arguments])
    assert result.exit_code == 2
    assert result.output == "expected --topic (with --bootstrap-servers or -c) or --file, one of both\n"


def test_a_file_that_is_not_there_is_named(streamwatch: CliRunner) -> None:
    result = streamwatch.invoke(app, ["inspect", "--file", "absent.jsonl", "--file", "other.jsonl"])
    assert result.exit_code == 2
    assert result.output == "absent.jsonl cannot be read: No such file or directory\n"


def test_brokers_that_do_not_answer_are_named(streamwatch: CliRunner) -> None:
    result = streamwatch.invoke(app, ["inspect", "-b", "127.0.0.1:1", "-t", "a", "-t", "b"])
    assert result.exit_code == 2
    assert "Kafka at 127.0.0.1:1: " in result.output


@pytest.mark.usefixtures("streamwatch")
def test_security_of_the_settings_is_written_and_never_the_password() -> None:
    Path("password").write_text("secret")
    security = "{protocol: SASL_SSL, username: u, password_file: password}"
    Path("brokers.yaml").write_text(f"kafka: {{bootstrap_servers: 'a:1', security: {security}}}")
    written = kafka_written(sampling_settings(Path("brokers.yaml"), "b:2", None, []).kafka)
    assert written == {
        "bootstrap_servers": "b:2",
        "security": {"protocol": "SASL_SSL", "username": "u", "password_file": "password"},
    }
    overrides = ["kafka.security.password=secret", "kafka.security.username=u"]
    hidden = sampling_settings(None, "b:2", None, overrides).kafka
    assert "secret" not in str(kafka_written(hidden))


@pytest.mark.usefixtures("streamwatch")
def test_settings_are_proposed_where_passwords_are_given_elsewhere() -> None:
    overrides = [
        "kafka.security={protocol: SASL_SSL, username: u, password: secret}",
        "schema_registry={url: 'https://r', username: u, password: secret}",
    ]
    sections = sections_written(sampling_settings(None, "b:2", None, overrides), registry=True)
    samples, _ = read_files(files(int_and_text)[1::2], 1_000)
    found = inspect(samples, sections)
    assert found.text is not None
    written = parse(found.text)
    assert written["kafka"]["security"] == {"protocol": "SASL_SSL", "username": "u"}
    assert written["schema_registry"] == {"url": "https://r", "username": "u"}


@pytest.mark.parametrize("option", ["--bootstrap-servers", "--schema-registry", "--set", "--config"])
def test_an_option_that_files_have_no_use_for_is_refused(streamwatch: CliRunner, option: str) -> None:
    Path("few.csv").write_text("id,model,prediction\n1,m,a\n")
    result = streamwatch.invoke(app, ["inspect", "--file", "few.csv", option, "kafka.client_id=x"])
    assert result.exit_code == 2
    assert option in result.output
    assert "are for --topic" in " ".join(result.output.split())


def test_paths_are_shown_whole_where_a_table_would_break_them(streamwatch: CliRunner) -> None:
    long = "aFieldWhoseNameIsLonger" * 2
    for name, side in (("predictions", "prediction"), ("labels", "label")):
        lines = (json.dumps({long: {"id": f"i{n}", side: "ab"[n % 2]}}) for n in range(40))
        Path(f"{name}.jsonl").write_text("\n".join(lines))
    command = ["inspect", "--file", "predictions.jsonl", "--file", "labels.jsonl"]
    narrow, wide = (streamwatch.invoke(app, command, env={"COLUMNS": width}) for width in ("80", "200"))
    assert f"  id: value.{long}.id\n" in narrow.stderr
    assert "┃ path" not in narrow.stderr
    assert f"│ value.{long}.id " in wide.stderr


def test_lines_that_cannot_be_read_are_counted_and_the_first_is_named(streamwatch: CliRunner) -> None:
    Path("few.csv").write_text("id,model,prediction\n1,m,a,b\n2,m\n3,m,a\n")
    shown = streamwatch.invoke(app, ["inspect", "--file", "few.csv"]).output
    assert "few.csv: 2 lines could not be read; the first is line 2: wrong_number_of_columns" in shown


def test_records_of_stdin_have_a_name_and_each_model_of_a_record_has_its_rows(streamwatch: CliRunner) -> None:
    chance = Random(1)
    truth = chance.choices("ab", k=300)
    right, less_right = ([one if chance.random() < share else "b" for one in truth] for share in (0.9, 0.8))
    lines = "".join(
        f'{{"id": "t{i}", "champion": {{"class": "{one}"}}, "challenger": {{"class": "{other}"}}}}\n'
        for i, (one, other) in enumerate(zip(right, less_right, strict=True))
    )
    labels = "".join(f'{{"id": "t{i}", "label": "{label}"}}\n' for i, label in enumerate(truth))
    Path("labels.jsonl").write_text(labels)
    result = streamwatch.invoke(app, ["inspect", "--file", "-", "--file", "labels.jsonl"], input=lines)
    assert result.exit_code == 0, result.output
    table = result.stderr.split("examples of joined pairs")[0]
    assert table.count("stdin (prediction)") == 2
    assert "value.champion.class" in table
    assert "value.challenger.class" in table


@pytest.mark.parametrize("sample", ["30", "100"])
def test_labels_whose_predictions_were_not_read_are_not_said_to_be_of_other_systems(
    streamwatch: CliRunner, sample: str
) -> None:
    """Of 30 records, the first ten predictions are missing; of 100, there are none for ten labels."""
    partial = sample == "30"
    ids = [*range(10, 40), *(range(10) if partial else range(40, 50))]
    sides = {
        "predictions": [{"id": f"t{n}", "model": "m", "prediction": "ab"[n % 2]} for n in range(40)],
        "labels": [{"id": f"t{n}", "label": "ab"[n % 2]} for n in ids],
    }
    arguments = list[str]()
    for start, (name, records) in zip((0, 1_000), sides.items(), strict=True):
        dated = ({**each, "timestamp": 1_700_000_000_000 + start + at} for at, each in enumerate(records))
        Path(f"{name}.jsonl").write_text("\n".join(map(json.dumps, dated)))
        arguments += ["--file", f"{name}.jsonl"]
    result = streamwatch.invoke(app, ["inspect", *arguments, "--sample", sample])
    told = " ".join(result.stderr.split())
    assert (
        "of 10 labels without a prediction, none is older than the first prediction of the sample: " in told
    )
    assert (
        "sample: predictions that were not read (--sample reads more), labels of other" in told
    ) == partial
