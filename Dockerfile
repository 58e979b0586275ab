# One image for everything: `downburst hub` (the default), its parts beside it, senders, and `downburst-node receive`.
#
# The bases can be replaced where these names can't be pulled: docker build --build-arg RUST_IMAGE=... .
# Programs and page are built here. Those that `make setup node-kafka` built on a machine of the same Debian are taken
# instead with --build-arg PROGRAMS=programs-of-this-machine --build-arg PAGE=page-of-this-machine.
# Caches of crates and of what was compiled need BuildKit, which Docker has used by itself since release 23.
ARG RUST_IMAGE=rust:1.88-slim-bookworm
ARG NODE_IMAGE=node:22-bookworm-slim
ARG PYTHON_IMAGE=python:3.11-slim-bookworm
ARG PROGRAMS=programs-built-here
ARG PAGE=page-built-here

FROM ${RUST_IMAGE} AS programs-built-here
# librdkafka is built from source, with TLS of the system's OpenSSL.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends build-essential libssl-dev pkg-config \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /build/workers
COPY workers/Cargo.toml workers/Cargo.lock workers/clippy.toml ./
COPY workers/crates crates
RUN --mount=type=cache,target=/usr/local/cargo/registry --mount=type=cache,target=/build/target \
    export CARGO_TARGET_DIR=/build/target \
    && cargo build --release --locked -p downburst-node -p downburst-log-kafka \
    && install -D -t /programs /build/target/release/downburst-node /build/target/release/downburst-node-kafka \
    && strip /programs/*

FROM scratch AS programs-of-this-machine
ARG PROFILE=release
COPY workers/target/${PROFILE}/downburst-node workers/target/${PROFILE}/downburst-node-kafka /programs/

FROM ${NODE_IMAGE} AS page-built-here
WORKDIR /build
COPY services/dashboard/package.json services/dashboard/package-lock.json services/dashboard/.npmrc ./
RUN npm ci
COPY services/dashboard/ ./
RUN npm run build && mv dist /page

FROM scratch AS page-of-this-machine
COPY services/dashboard/dist /page

# Names of stages can't be variables of a COPY.
FROM ${PROGRAMS} AS programs
FROM ${PAGE} AS page

FROM ${PYTHON_IMAGE} AS guide
WORKDIR /build
COPY requirements-docs.lock ./
RUN pip install --no-cache-dir --require-hashes --no-deps -r requirements-docs.lock
COPY pyproject.toml ./
COPY docs docs
RUN python -m sphinx -q -W -c docs/site -d /tmp/doctrees -b html docs /guide

FROM ${PYTHON_IMAGE} AS python-build
WORKDIR /build
RUN python -m venv /opt/downburst
COPY requirements-image.lock requirements-build.lock ./
RUN /opt/downburst/bin/pip install --no-cache-dir --require-hashes --no-deps \
    -r requirements-image.lock -r requirements-build.lock
COPY pyproject.toml README.md LICENSE ./
COPY core core
COPY app app
COPY analyze analyze
COPY api api
COPY client client
COPY contract contract
COPY scheduler scheduler
COPY services services
COPY workers/downburst_worker workers/downburst_worker
COPY docs docs
RUN /opt/downburst/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM ${PYTHON_IMAGE}
RUN useradd --system --uid 7370 --home-dir /var/lib/downburst --shell /usr/sbin/nologin downburst \
    && install -d -o downburst -g downburst -m 0700 /var/lib/downburst /var/lib/downburst-tokens
COPY --from=python-build /opt/downburst /opt/downburst
COPY --from=page /page /usr/share/downburst/dashboard
COPY --from=guide /guide /usr/share/downburst/guide
COPY --from=programs /programs/ /usr/local/bin/
# A container's own loopback is of no use to others, so both ports listen on every address; publish only what is meant
# to be reached, and keep HTTP behind a proxy that knows its users.
ENV PATH=/opt/downburst/bin:$PATH \
    DOWNBURST_DATA_DIR=/var/lib/downburst \
    DOWNBURST_DASHBOARD_DIR=/usr/share/downburst/dashboard \
    DOWNBURST_GUIDE_DIR=/usr/share/downburst/guide \
    DOWNBURST_NODE=/usr/local/bin/downburst-node \
    DOWNBURST_HTTP=0.0.0.0:7371 \
    DOWNBURST_SITES=0.0.0.0:7370
USER downburst
WORKDIR /var/lib/downburst
VOLUME /var/lib/downburst
EXPOSE 7370 7371
CMD ["downburst", "hub"]
