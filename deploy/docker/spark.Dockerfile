# Driver and executors of `streamwatch spark` on Kubernetes: Spark as it is in the lock file, Java, and the Python that
# both run.
#
#     docker build -f deploy/docker/spark.Dockerfile -t streamwatch-spark:0.1.0 .
#
# What an estimator needs compiled, and is not in deploy/docker/streamwatch.yaml, every pod compiles once.

ARG SPARK_VERSION=4.2.1
# Of this one only the entry point is taken, which the wheel does not have.
FROM apache/spark:${SPARK_VERSION} AS spark


FROM python:3.11.13-slim-bookworm AS build
ARG UV_VERSION=0.13.8
RUN python -m pip install --no-cache-dir --disable-pip-version-check --root-user-action=ignore "uv==${UV_VERSION}"
ENV UV_PROJECT_ENVIRONMENT=/opt/streamwatch/venv \
    UV_PYTHON=/usr/local/bin/python3.11 \
    UV_PYTHON_DOWNLOADS=never \
    UV_LINK_MODE=copy \
    UV_COMPILE_BYTECODE=1
WORKDIR /src
COPY pyproject.toml uv.lock ./
RUN uv sync --frozen --no-cache --no-default-groups --extra spark --extra compression --no-install-project
COPY README.md LICENSE ./
COPY streamwatch ./streamwatch
RUN uv sync --frozen --no-cache --no-default-groups --extra spark --extra compression --no-editable
COPY deploy/docker/streamwatch.yaml /etc/streamwatch/streamwatch.yaml
# generic: the machine that builds is not the one that runs, and compiled code is kept by processor.
RUN NUMBA_CACHE_DIR=/opt/streamwatch/kernel NUMBA_CPU_NAME=generic \
    /opt/streamwatch/venv/bin/streamwatch compile --config /etc/streamwatch/streamwatch.yaml


FROM python:3.11.13-slim-bookworm
RUN apt-get update \
 && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps tini \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --system --gid 10001 streamwatch \
 && useradd --system --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent \
      --shell /usr/sbin/nologin streamwatch \
 && install --directory --owner=10001 --group=10001 --mode=0700 /opt/spark/work-dir
COPY --from=spark /opt/entrypoint.sh /opt/entrypoint.sh
COPY --from=build --chown=10001:10001 /opt/streamwatch /opt/streamwatch
ENV SPARK_HOME=/opt/streamwatch/venv/lib/python3.11/site-packages/pyspark \
    PYSPARK_PYTHON=/opt/streamwatch/venv/bin/python \
    PATH=/opt/streamwatch/venv/bin:/usr/local/bin:/usr/bin:/bin \
    NUMBA_CACHE_DIR=/opt/streamwatch/kernel \
    NUMBA_CPU_NAME=generic \
    PYTHONUNBUFFERED=1
WORKDIR /opt/spark/work-dir
USER 10001:10001
ENTRYPOINT ["/opt/entrypoint.sh"]
