"""Commands of `python -m streamwatch.papers`: one for the testbed's streams, one for each experiment."""

# ruff: noqa: PLC0415  # heavy modules are imported when a command needs them
from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from streamwatch.cli.compile import reporting_compilation
from streamwatch.cli.options import refuse

if TYPE_CHECKING:
    from streamwatch.papers.result import Experiment, Table
    from streamwatch.papers.streams.gaussians import Mixture


# Shared by the commands of experiments: options, progress, tables and pictures.


Seed = Annotated[
    int,
    typer.Option(
        "--seed", help="Seed of the runs. Another seed changes each number within its error.", min=0
    ),
]
Reduced = Annotated[
    bool, typer.Option("--reduced", help="Take seconds only, with fewer runs and larger errors.")
]
Figures = Annotated[
    Path | None,
    typer.Option(
        "--figures", metavar="FOLDER", help="Write the figures to this folder as PNG (requires matplotlib)."
    ),
]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print the tables as Markdown.")]
Recording = Annotated[
    Path | None,
    typer.Option(
        "--recording",
        metavar="FILE.csv",
        help="CSV with the labels in y_true and a column of predictions per classifier.",
    ),
]


Moa = Annotated[
    Path | None,
    typer.Option(
        "--moa",
        metavar="FOLDER",
        help="Folder with MOA's jar files, to run MOA's as well (requires Java 11).",
    ),
]


def show(  # one parameter per option
    experiment: Experiment,
    *,
    seed: int,
    reduced: bool,
    figures: Path | None,
    as_markdown: bool,
    recording: Path | None = None,
    moa: Path | None = None,
) -> None:
    """Run an experiment, print its tables and draw its figures."""
    from rich.console import Console

    from streamwatch.papers.classification.peers import RiverError
    from streamwatch.papers.comparison import AnswersError
    from streamwatch.papers.moa_runs import MoaError
    from streamwatch.papers.result import Effort, check_drawing, draw_figure

    if figures is not None:
        with _refusing(figures):
            check_drawing(figures)
    with reporting_compilation(), Console(stderr=True).status(experiment.title) as status:
        try:
            result = experiment.run(Effort(seed, reduced, recording, status.update, moa))
        except MoaError as error:
            refuse(f"--moa: {error}")
        except (AnswersError, RiverError) as error:
            refuse(str(error))
    _print(f"{experiment.title} ({experiment.source})", result.tables, 160, as_markdown=as_markdown)
    if figures is not None:
        with _refusing(figures):
            for figure in result.figures:
                typer.echo(f"drawn: {draw_figure(figure, figures)}", err=True)


@contextmanager
def _refusing(figures: Path) -> Generator[None]:
    """Refuse a folder to which figures cannot be written, and figures if matplotlib is not installed."""
    from streamwatch.papers.result import DrawingError

    try:
        yield
    except DrawingError as error:
        refuse(str(error))
    except OSError as error:
        refuse(f"--figures: {figures} cannot be written: {error.strerror or error}")


def _print(heading: str, tables: Sequence[Table], width: int, *, as_markdown: bool) -> None:
    """Print tables as Markdown, or for a person: below a heading, to a file in lines of this width."""
    import sys

    from rich import table as rich
    from rich.console import Console

    from streamwatch.papers.result import markdown, text_of

    if as_markdown:
        typer.echo("\n".join(map(markdown, tables)))
        return
    # A table sent to a file must not lose digits to an assumed width of 80.
    console = Console() if sys.stdout.isatty() else Console(width=width)
    console.print(heading, style="bold")
    for table in tables:
        shown = rich.Table(title=table.title, title_justify="left", box=None, pad_edge=False)
        for index, name in enumerate(table.headings):
            shown.add_column(name, justify="right" if index else "left")
        for row in table.rows:
            shown.add_row(*map(text_of, row))
        console.print()
        console.print(shown)
        if table.notes:
            console.print(table.notes, style="dim", highlight=False)


# `python -m streamwatch.papers benchmark`: the field's benchmark of drift detectors.


def benchmark(  # noqa: PLR0913  # one parameter per option
    *,
    part: Annotated[
        Literal["all", "reproduced", "generated", "recorded", "tuned", "frozen", "calibration"],
        typer.Option(
            help="Tables to make: the paper's own figures again, everybody on generated streams, on recorded "
            "ones with induced drifts, tuned, at equal false alarms, or false alarms at defaults."
        ),
    ] = "all",
    moa: Annotated[
        Path | None,
        typer.Option("--moa", metavar="FOLDER", help="Folder with MOA's jar files (requires Java 17)."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", metavar="FOLDER", help="Folder with data sets: NAME.csv, no header, the class last."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", help="Streams of each kind.", min=2)] = 30,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the first of them.", min=1)] = 1,
    reduced: Reduced = False,
    as_markdown: Markdown = False,
    write: Annotated[
        Path | None,
        typer.Option("--write", metavar="PAGE.md", help="Write the tables between their marks in this page."),
    ] = None,
) -> None:
    """Score detectors by the field's benchmark: the daemon's, river's, MOA's, and controls that see no loss.

    Make the tables that need no MOA and no data: equal false alarms on
    simulated losses, and false alarms at defaults:

        python -m streamwatch.papers benchmark --part frozen
        python -m streamwatch.papers benchmark --part calibration

    Everything (three quarters of an hour), MOA's detectors and its Hoeffding
    tree included, into the page that is published:

        python -m streamwatch.papers benchmark --moa .cache/moa/libs --data DATA --write PAGE.md

    All but the parts frozen and calibration require --moa; recorded requires
    --data. Source: Cerqueira, Gomes, Heyden, Pfahringer, Bifet 2026.
    """
    from rich.console import Console

    from streamwatch.papers.benchmark import page
    from streamwatch.papers.benchmark.induced import DataError
    from streamwatch.papers.moa_runs import MoaError
    from streamwatch.papers.result import Effort

    parts = tuple(page.PARTS) if part == "all" else (part,)
    for name in parts:
        if moa is None and name not in page.WITHOUT_MOA:
            refuse(f"--moa: expected a folder with MOA's jar files for the part {name}")
        if data is None and name == "recorded":
            refuse("--data: expected a folder with data sets for the part recorded")
    if write is not None:
        try:
            page.check(write, parts)
        except (OSError, page.PageError) as error:
            refuse(f"--write: {write}: {error}")
    with reporting_compilation(), Console(stderr=True).status("benchmark") as status:
        effort = Effort(seed, reduced, None, status.update, moa, data, min(seeds, 3) if reduced else seeds)
        for name in parts:
            try:
                tables = page.PARTS[name](effort)
            except (MoaError, DataError) as error:
                refuse(f"{'--moa' if isinstance(error, MoaError) else '--data'}: {error}")
            if write is None:
                heading = "The field's benchmark (Cerqueira et al. 2026)"
                _print(heading, tables, 220, as_markdown=as_markdown)
            else:
                text = page.written(write.read_text(encoding="utf-8"), name, tables)
                write.write_text(text, encoding="utf-8")


# `python -m streamwatch.papers testbed`: nine streams that drift in known ways.


def write_stream(  # noqa: PLR0913  # one parameter per option
    name: Annotated[
        str | None, typer.Argument(metavar="[STREAM]", help="Stream to write. Default: describe all nine.")
    ] = None,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write. Default: stdout.")
    ] = None,
    layout: Annotated[
        Literal["csv", "jsonl"],
        typer.Option("--format", help="Write rows of outcomes (csv) or events as JSON lines (jsonl)."),
    ] = "csv",
    instances: Annotated[
        int, typer.Option("--instances", "-n", help="Instances to write; 0 for no end.", min=0)
    ] = 10_000,
    lap: Annotated[
        int,
        typer.Option(
            help="Instances in one cycle of changes, which then repeats; fewer make the drifts faster.", min=1
        ),
    ] = 10_000,
    seed: Annotated[
        int, typer.Option("--seed", help="Seed of the stream. Equal seeds give equal streams.", min=0)
    ] = 1,
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-servers", "-b", help="Write to Kafka instead of a file: brokers as host:port."
        ),
    ] = None,
    predictions: Annotated[str, typer.Option(help="Kafka topic for predictions.")] = "predictions",
    labels: Annotated[str, typer.Option(help="Kafka topic for labels.")] = "labels",
    create_topics: Annotated[
        bool, typer.Option("--create-topics", help="Create topics that do not exist.")
    ] = False,
) -> None:
    """Write a stream of the testbed with the predictions of its optimal classifier, or list the streams.

    Describe the nine streams and what drifts in each:

        python -m streamwatch.papers testbed

    Write attributes and labels for a learner of your own, with the predictions
    of the classifier that no other can beat, and evaluate these:

        python -m streamwatch.papers testbed NSGT-I -n 20000 -o nsgt-i.csv
        streamwatch replay nsgt-i.csv

    NSGT-F is NSGT with drifts three times as fast. Write drifts half as fast:

        python -m streamwatch.papers testbed NSGT --lap 20000 -n 20000 -o slow.csv

    Write to Kafka, under the default field names, dated as a backlog that ends
    now:

        python -m streamwatch.papers testbed NSCX -b localhost:9092 --create-topics

    The streams are those of Cervantes, Gagné, Isasi and Parizeau
    (docs/testbed.md).
    """
    if name is None:
        _cards()
        return

    import sys

    from streamwatch.papers.streams.testbed import named
    from streamwatch.papers.streams.writing import lines

    try:
        kind = named(name)
        mixture = kind.mixture if lap == kind.mixture.lap else kind.mixture.over(lap)
    except ValueError as error:
        refuse(str(error))
    if bootstrap_servers is not None:
        if output is not None or not instances:
            refuse("--bootstrap-servers: expected no --output and at least 1 of --instances")
        topics = (predictions, labels)
        _to_kafka(mixture, instances, seed, bootstrap_servers, topics, 1 if create_topics else None)
        typer.echo(f"{', '.join(topics)}: {instances:,} instances of {kind.name}", err=True)
        return
    written = lines(mixture, layout, instances or None, seed)
    if output is None:
        sys.stdout.writelines(written)
        sys.stdout.flush()
        return
    if not instances:
        refuse("--instances: expected at least 1 for a file, got 0: a stream without end fits in none")
    try:
        with output.open("w", encoding="utf-8") as file:
            file.writelines(written)
    except OSError as error:
        refuse(f"--output: {output} cannot be written: {error.strerror or error}")
    changes = kind.known_changes(instances) if lap == kind.mixture.lap else ()
    jumps = f"; changes at once at instances {', '.join(f'{at:,}' for at in changes)}" if changes else ""
    typer.echo(f"{output}: {instances:,} instances of {kind.name}{jumps}", err=True)


def _to_kafka(  # where to, and what
    mixture: Mixture,
    instances: int,
    seed: int,
    servers: str,
    topics: tuple[str, str],
    create: int | None,
) -> None:
    import asyncio

    from streamwatch.demo.simulate import SimulationError
    from streamwatch.papers.streams.writing import write_to_kafka

    try:
        asyncio.run(write_to_kafka(mixture, instances, seed, servers, topics, create))
    except SimulationError as error:
        refuse(str(error))


def _cards() -> None:
    from rich.console import Console
    from rich.table import Table

    from streamwatch.papers.streams.testbed import KINDS

    table = Table(box=None, pad_edge=False, title="Streams of the testbed", title_justify="left")
    for heading in ("stream", "attributes", "what drifts", "asks for", "optimal error\n(paper, %)"):
        table.add_column(heading, justify="right" if "error" in heading else "left")
    for kind in KINDS:
        mixture = kind.mixture
        table.add_row(
            kind.name, str(mixture.dimensions), kind.drifts, kind.asks, f"{kind.printed_optimal:.2f}"
        )
    Console().print(table)


# The commands: those above, and one for each experiment without options of its own.


app = typer.Typer(
    help="Generate streams with known drifts, and repeat experiments of the literature with the daemon's own "
    "estimators.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


def _add_experiment(
    name: str, text: str, *, module: str | None = None, takes: Literal["recording", "moa"] | None = None
) -> None:
    """Add the command of the experiment in a module, by default that of its name, with its option."""

    def kind() -> Experiment:
        return import_module(f"streamwatch.papers.{module or name.replace('-', '_')}").KIND

    def on_streams(
        *, seed: Seed = 1, reduced: Reduced = False, figures: Figures = None, as_markdown: Markdown = False
    ) -> None:
        show(kind(), seed=seed, reduced=reduced, figures=figures, as_markdown=as_markdown)

    def on_answers(
        *,
        recording: Recording = None,
        seed: Seed = 1,
        reduced: Reduced = False,
        figures: Figures = None,
        as_markdown: Markdown = False,
    ) -> None:
        show(
            kind(), seed=seed, reduced=reduced, figures=figures, as_markdown=as_markdown, recording=recording
        )

    def beside_moa(
        *,
        moa: Moa = None,
        seed: Seed = 1,
        reduced: Reduced = False,
        figures: Figures = None,
        as_markdown: Markdown = False,
    ) -> None:
        show(kind(), seed=seed, reduced=reduced, figures=figures, as_markdown=as_markdown, moa=moa)

    commands = {None: on_streams, "recording": on_answers, "moa": beside_moa}
    app.command(name, help=text)(commands[takes])


app.command("testbed")(write_stream)
_add_experiment(
    "holdout",
    """Compare the error of a holdout set with prequential errors that do and do not forget.

    An estimate that remembers everything stays above the current error; faded
    and sliding estimates converge to it:

        python -m streamwatch.papers holdout

    Take seconds only, and draw the learning curves:

        python -m streamwatch.papers holdout --reduced --figures pictures

    Source: Gama, Sebastião, Rodrigues 2009, §3.2.1.
    """,
)
_add_experiment(
    "comparison",
    """Follow the Q statistic and McNemar's test of two learners over time, under several forgettings.

    One learner never forgets, the other one restarts at every alarm, while the
    SEA concepts change three times:

        python -m streamwatch.papers comparison --figures pictures

    Source: Gama, Sebastião, Rodrigues 2009, §3.3, Figures 4 to 7.
    """,
)
_add_experiment(
    "page-hinkley",
    """Measure the detection delay of Page-Hinkley by its fading factor, and compare it with the paper's.

        python -m streamwatch.papers page-hinkley

    Source: Gama, Sebastião, Rodrigues 2009, Table 2.
    """,
)
_add_experiment(
    "windows",
    """Measure how far windows, fading factors and ADWIN are from a known error.

    Find out which forgetting suits which pace of change:

        python -m streamwatch.papers windows --figures pictures

    Compare windows with ADWIN on recorded predictions, too (a CSV with the
    labels in y_true and a column of predictions per classifier):

        python -m streamwatch.papers windows --recording answers.csv

    Sources: Gama, Sebastião, Rodrigues 2009, §3.2.1; Bifet et al. 2015, §6.
    """,
    takes="recording",
)
_add_experiment(
    "dependence",
    """Evaluate recorded classifiers on temporally dependent labels, as recorded and shuffled.

    A recording is a CSV with the labels in y_true and a column of predictions
    per classifier:

        python -m streamwatch.papers dependence --recording answers.csv --figures pictures

    The gains by temporal correction and augmentation are also measured on
    synthetic labels of known dependence. Source: Žliobaitė et al. 2015, §6.
    """,
    takes="recording",
)
_add_experiment(
    "random-alarms",
    """Show that false alarms raise accuracy on labels that come in runs, so accuracy cannot rank detectors.

        python -m streamwatch.papers random-alarms --recording answers.csv

    Only the labels of the recording are used, in y_true. Source: Žliobaitė et
    al. 2015, §5.2 and §6.9.
    """,
    takes="recording",
)
_add_experiment(
    "dependent-losses",
    """Run detectors on temporally dependent losses: as they are, shuffled, and corrected for dependence.

    Measure false alarms and delays where changes are known, and the alarms on
    recorded classifiers (a CSV with the labels in y_true and a column of
    predictions per classifier):

        python -m streamwatch.papers dependent-losses --recording answers.csv --figures pictures

    Source: Žliobaitė et al. 2015, §5.1 and §6.9.
    """,
    takes="recording",
)
_add_experiment(
    "weighted",
    """Rank a quick and a slow learner by accuracy and by drift-weighted accuracy with several drift signals.

        python -m streamwatch.papers weighted --figures pictures

    Source: Brzezinski, Stefanowski, Figure 1.
    """,
)
_add_experiment(
    "recovery",
    """Measure how far learners fall at a known change, and how long they take to recover.

        python -m streamwatch.papers recovery --figures pictures

    Sources: Brzezinski, Stefanowski, §1; Cervantes et al., §2.4.
    """,
)
_add_experiment(
    "validation",
    """Count how often statistical tests call two classifiers different, by validation scheme.

    The result is why the daemon tests over folds and treats McNemar's test as
    descriptive:

        python -m streamwatch.papers validation

    Source: Bifet et al. 2015, §3 and §4, Tables 1 and 2.
    """,
)
_add_experiment(
    "imbalance",
    """Compare κ, κ_m, mean recalls and normalised accuracy on imbalanced classes.

        python -m streamwatch.papers imbalance --recording answers.csv --figures pictures

    The recording has the labels in y_true and a column of predictions per
    classifier. Source: Bifet et al. 2015, §5.
    """,
    takes="recording",
)
_add_experiment(
    "optimal",
    """Measure the errors of the testbed's optimal classifiers and compare them with the paper's.

        python -m streamwatch.papers optimal --figures pictures

    Source: Cervantes, Gagné, Isasi, Parizeau, Table 3.
    """,
)
_add_experiment(
    "classifiers",
    """Run classifiers on the nine streams of the testbed and compare their errors with the paper's.

    Run naive Bayes, a support vector machine trained by gradient descent,
    Dynamic Weighted Majority, bagging with ADWIN, and nearest neighbours in
    windows, prequentially over ten streams of 10,000 instances each (a quarter
    of an hour); with --reduced, over the first 400 instances of three:

        python -m streamwatch.papers classifiers --figures pictures

    Requires river. With --moa, MOA's classifiers, which the paper used, run as
    well. Source: Cervantes, Gagné, Isasi, Parizeau, Table 3.
    """,
    module="classification.experiment",
    takes="moa",
)
_add_experiment(
    "detectors",
    """Score detectors where changes are known: true, false and missed alarms, and delays.

    Score all detectors at their defaults on steps, ramps, correlated losses
    and stale models of the testbed; then plot delay against false alarms over
    a range of thresholds:

        python -m streamwatch.papers detectors --figures pictures

    river's detectors are scored as well if river is installed, and MOA's with
    --moa.
    """,
    module="detection.experiment",
    takes="moa",
)
app.command("benchmark")(benchmark)
