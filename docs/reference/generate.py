"""Write the pages of docs/reference that are made from the code, and the configuration file to start from.

python -m docs.reference.generate            name the pages that are not up to date; exit code 1 if any
python -m docs.reference.generate --write    write them
"""

# ruff: noqa: INP001  # a script, beside what it writes
from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import typer.main

from docs.reference import examples
from streamwatch.assembly.http import ROUTES
from streamwatch.cli import app
from streamwatch.cli.catalogue import TITLES
from streamwatch.cli.catalogue import document as catalogue_document
from streamwatch.core.estimators import catalogue
from streamwatch.core.metrics import (
    ALARMS,
    COMPARISONS,
    DAEMON,
    JOIN,
    MERGE,
    PROCESS,
    RESULTS,
    STATE,
    Metric,
)
from streamwatch.core.metrics.series import PREFIX
from streamwatch.core.publishing.documents import EventDocument, OutcomeDocument, json_schema
from streamwatch.edge.web.openapi import document as api_document
from streamwatch.settings import example
from streamwatch.settings.table_of_changes import RULES, Case, keys

FOLDER = Path(__file__).parent
HEAD = "<!-- Made from the code by `make generated`. -->\n"
_NAMES = (
    f"All names start with `{PREFIX}`, except those of the process. An undefined value has no sample. With "
    "the default settings, the label `forgetting` is `landmark`, `fading:0.999`, `sliding:1000` or "
    "`adwin:0.05`. Estimates decay per outcome, not per second, which PromQL cannot reproduce."
)
_SERVED = (
    "The running daemon serves this description as OpenAPI 3.1 at `/api/v1/openapi.json`. If "
    "`http.token_file` is set, every request needs the header `Authorization: Bearer …`, except for "
    "`/healthz`, `/readyz` and the static files of the page."
)
_CATALOGUE = (
    "Everything that `streamwatch catalogue` lists. K is the number of classes, W the number of outcomes "
    "in a window."
)
DECAY = "decay is per outcome, not per second"


def sections() -> Sequence[tuple[str, Sequence[Metric]]]:
    """All metrics, by what they are about."""
    return (
        ("Per model", catalogue.metrics()),
        ("Comparisons of two models", COMPARISONS),
        ("Alarms and notifications", ALARMS),
        ("Join of predictions and labels", JOIN),
        ("One clock and one order", MERGE),
        ("State and its commits", STATE),
        ("The daemon itself", DAEMON),
        ("Results of Spark", RESULTS),
        ("The process (without the prefix)", PROCESS),
    )


def metrics_page() -> str:
    """Every metric: name, type, labels, meaning."""
    lines = ["# Metrics", "", _NAMES]
    for title, metrics in sections():
        lines += ["", f"## {title}", "", "| metric | type | labels | meaning |", "|---|---|---|---|"]
        lines += [f"| `{m.name}` | {m.kind} | {_labels(m)} | {_meaning(m.help)} |" for m in metrics]
    return "\n".join(lines) + "\n"


def _labels(metric: Metric) -> str:
    return ", ".join(f"`{label}`" for label in metric.labels)


def _meaning(text: str) -> str:
    for stated_above in (f"; {DECAY})", f" ({DECAY})"):
        text = text.replace(stated_above, ")" if stated_above.startswith(";") else "")
    return _cell(text.removesuffix("."))


def _cell(text: str) -> str:
    for special in ("\\", "|", "*", "_", "<"):
        text = text.replace(special, "\\" + special)
    return text


def catalogue_page() -> str:
    """Everything that is computed: formula, source, parameters, cost, example."""
    lines = ["# Catalogue", "", _CATALOGUE]
    lines += ["", examples.SAID, "", "```pycon", examples.SESSION.rstrip(), "```"]
    for kind, entries in catalogue_document().items():
        lines += ["", f"## {kind.replace('_', ' ').capitalize()}", "", f"{_cell(TITLES[kind])}."]
        for entry in entries:
            lines += ["", f"### {_cell(entry['name'])}", "", f"{_cell(entry['help'])}.", ""]
            lines += [f"- formula: `{entry['formula']}`"] if entry["formula"] else []
            lines += [f"- source: {_cell(entry['source'])}"] if entry["source"] else []
            lines += [f"- cost: {_cell(entry['cost'])}"] if entry["cost"] else []
            lines += [
                f"- `{p['name']}`: {_cell(p['meaning'])}, {p['expected']}; `{p['default']}` by default. "
                f"{_cell(p['help'])}"
                for p in entry.get("parameters", ())
            ]
            lines += ["", "```pycon", examples.EXAMPLES[kind][entry["name"]].rstrip(), "```"]
    return "\n".join(lines) + "\n"


def settings_page() -> str:
    """Every setting with its default and meaning: the example of `streamwatch config example`."""
    return f"""# Settings

Settings are read from one YAML file: the one given by `--config` or `STREAMWATCH_CONFIG`, or else
`streamwatch.yaml` in the working directory. Any key can also be set in the environment
(`STREAMWATCH__JOIN__HORIZON=7d`) or on the command line (`--set join.horizon=7d`). The command line takes
precedence over the environment, and the environment over the file. If a key is unknown or a value is invalid,
the command stops and names the key and what was expected. `streamwatch config schema` prints a JSON Schema
for editors.

The following is the output of `streamwatch config example`: every key with its default and its meaning.

```yaml
{example().rstrip()}
```
"""


_CHANGES = """\
History of records is not kept, so a change of a setting on a state that exists is one of five things.
`streamwatch check` says which, setting by setting, before it happens; `streamwatch run` does the same
and logs it (`setting_changed`). If a change is refused, `run` ends with exit code 2 and names the command
that helps.

| what becomes of the state | |
|---|---|
| **goes on** | nothing that is kept depends on the setting |
| **from now on** | what was counted stays; what comes follows the new value |
| **begins anew** | that part alone begins with no outcomes; everything else goes on |
| **converted at start** | the first start under the new value converts what is kept |
| **refused** | `run` does not start; what waits or was counted could not be gone on with |

Refused whatever the rows of topics say: a topic that was read for predictions, for labels or for both, and
now for something else; and settings that name none of the earlier topics.

Where several cases are listed, the first one that applies counts. An evaluation epoch is shown on the
page and in the API with its time, the settings that began it, and the number of outcomes evaluated before."""


def changes_page() -> str:
    """What a change of each setting does to a state that exists."""
    lines = ["# Changes of settings", "", _CHANGES]
    by_section: dict[str, list[str]] = {}
    for key in keys():
        by_section.setdefault(key.partition(".")[0], []).append(key)
    for section, of_section in by_section.items():
        lines += ["", f"## {section}", "", "| setting | what becomes of the state |", "|---|---|"]
        alike: dict[tuple[Case, ...], list[str]] = {}
        for key in of_section:
            alike.setdefault(RULES[key], []).append(key)
        for cases, several in alike.items():
            told = "; ".join(map(_case, cases))
            lines.append(f"| {', '.join(f'`{key}`' for key in several)} | {told} |")
    return "\n".join(lines) + "\n"


def _case(case: Case) -> str:
    when = f"{_cell(case.when)}: " if case.when else ""
    helps = f"; `{case.command}` helps" if case.command else ""
    return f"{when}**{case.change}**, {case.what}{helps}"


def cli_page() -> str:
    """Every command with its help."""
    command = typer.main.get_command(app)
    lines = ["# Commands"]
    for name, found in _commands("streamwatch", command):
        lines += [
            "",
            f"## {name}",
            "",
            f"`{_synopsis(name, found)}`",
            "",
            *_help(found),
            "",
            *_options(found),
        ]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines).rstrip()) + "\n"


def _commands(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    subcommands = getattr(command, "commands", None)
    yield name, command
    for part, subcommand in (subcommands or {}).items():
        yield from _commands(f"{name} {part}", subcommand)


def _synopsis(name: str, command: click.Command) -> str:
    return " ".join([name, *command.collect_usage_pieces(click.Context(command))])


def _help(command: click.Command) -> Iterable[str]:
    """Help as Markdown: what is bold or dim on a terminal is code here."""
    text = re.sub(r"\[(bold|dim|/bold|/dim)\]", "`", command.help or "")
    return [line.replace("``", "`") for line in text.splitlines()]


def _options(command: click.Command) -> Iterable[str]:
    for parameter in command.params:
        said = getattr(parameter, "help", None)
        if not said:
            continue
        names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
        said = re.sub(r"\[/?[a-z]+\]", "", said)
        default = parameter.default
        shown = not (default is None or isinstance(default, bool) or callable(default))
        yield f"- {names}: {_cell(said)}{f' Default: `{_plain(default)}`.' if shown else ''}"


def _plain(default: object) -> str:
    return (
        " ".join(map(str, default))
        if isinstance(default, Sequence) and not isinstance(default, str)
        else str(default)
    )


def api_page() -> str:
    """Every path of the HTTP server."""
    document = api_document(ROUTES)
    lines = [
        "# HTTP API",
        "",
        document["info"]["description"],
        "",
        _SERVED,
    ]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            lines += ["", f"## {method.upper()} `{path}`", "", f"{operation['summary']}."]
            lines += _parameters(operation.get("parameters", ()), document["components"]["parameters"])
            lines += ["", *_answers(operation["responses"])]
    return "\n".join(lines) + "\n"


def _parameters(parameters: Iterable[Mapping[str, Any]], shared: Mapping[str, Any]) -> Iterable[str]:
    named = [shared[p["$ref"].rsplit("/", 1)[1]] if "$ref" in p else p for p in parameters]
    if named:
        yield ""
    for parameter in named:
        about = parameter.get("description", "")
        schema = parameter.get("schema", {})
        limits = [f"{key} {schema[key]}" for key in ("minimum", "maximum", "default") if key in schema]
        extra = f" ({', '.join(limits)})" if limits else ""
        yield f"- `{parameter['name']}` in {parameter['in']}{': ' if about else ''}{_cell(about)}{extra}"


def _answers(responses: Mapping[str, Mapping[str, Any]]) -> Iterable[str]:
    for status, response in responses.items():
        if "$ref" in response:
            yield f"- {status}: {response['$ref'].rsplit('/', 1)[1]}"
        else:
            types = ", ".join(f"`{media}`" for media in response.get("content", {}))
            yield f"- {status}: {_cell(response.get('description', ''))}{f' ({types})' if types else ''}"


_TOPICS = (
    "Records of `outcomes.topic` and `events.topic` are JSON objects with the model as key, digests with "
    "their id ([how to use them](../how-to/outcomes-topic.md)). Every field is always there; null stands for "
    "what does not apply. "
    "The JSON Schemas are [outcome.schema.json](outcome.schema.json) and "
    "[event.schema.json](event.schema.json)."
)


def topics_page() -> str:
    """Every field of the records of outcomes and events."""
    lines = ["# Outcomes and events", "", _TOPICS]
    for title, document in (("Outcome", OutcomeDocument), ("Event", EventDocument)):
        schema = json_schema(document)
        lines += [
            "",
            f"## {title}",
            "",
            schema["description"],
            "",
            "| field | type | meaning |",
            "|---|---|---|",
        ]
        for name, field in schema["properties"].items():
            types = [field, *field.get("anyOf", ())]
            kinds = ", ".join(each.get("type", "string") for each in types if {"type", "enum"} & each.keys())
            values = [f"`{value}`" for each in types for value in each.get("enum", ()) if value is not None]
            meaning = field["description"].replace("|", "\\|").removesuffix(".")
            listed = f": {', '.join(values)}" if values else ""
            lines.append(f"| `{name}` | {kinds} | {meaning}{listed} |")
    return "\n".join(lines) + "\n"


def schema_file(document: type[OutcomeDocument | EventDocument]) -> str:
    """JSON Schema of a topic's records."""
    return json.dumps(json_schema(document), indent=2) + "\n"


PAGES: Mapping[str, Callable[[], str]] = {
    "metrics.md": metrics_page,
    "catalogue.md": catalogue_page,
    "settings.md": settings_page,
    "changes.md": changes_page,
    "cli.md": cli_page,
    "api.md": api_page,
    "topics.md": topics_page,
}
SCHEMAS: Mapping[str, type[OutcomeDocument | EventDocument]] = {
    "outcome.schema.json": OutcomeDocument,
    "event.schema.json": EventDocument,
}
"""JSON Schemas of the topics that are written, by file."""


EXAMPLE = "../../streamwatch/settings/example.yaml"
"""What `streamwatch config example` prints: made here, as making it imports all that settings are about."""


def written() -> dict[str, str]:
    """File name → content."""
    pages = {name: HEAD + page() for name, page in PAGES.items()}
    schemas = {name: schema_file(document) for name, document in SCHEMAS.items()}
    return pages | schemas | {EXAMPLE: example()}


def main(arguments: Sequence[str]) -> int:
    """Write the pages, or say which are not up to date."""
    stale = 0
    for name, content in written().items():
        file = FOLDER / name
        if file.exists() and file.read_text("utf-8") == content:
            continue
        stale += 1
        sys.stdout.write(f"{name}\n")
        if "--write" in arguments:
            file.write_text(content, "utf-8")
    return 0 if "--write" in arguments else int(stale > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
