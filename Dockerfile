# One image for both roles: `downburst hub` (the default) and `downburst-node receive`.
# The bases can be replaced where these names can't be pulled: docker build --build-arg RUST_IMAGE=... .
ARG RUST_IMAGE=rust:1.88-slim-bookworm
ARG NODE_IMAGE=node:22-bookworm-slim
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

FROM ${RUST_IMAGE} AS node-build
WORKDIR /build
COPY workers/Cargo.toml workers/Cargo.lock workers/clippy.toml ./
COPY workers/crates crates
RUN cargo build --release --locked -p downburst-node \
    && strip target/release/downburst-node

FROM ${NODE_IMAGE} AS dashboard-build
WORKDIR /build
COPY services/dashboard/package.json services/dashboard/package-lock.json services/dashboard/.npmrc ./
RUN npm ci
COPY services/dashboard/ ./
RUN npm run build

FROM ${PYTHON_IMAGE} AS python-build
WORKDIR /build
RUN python -m venv /opt/downburst
COPY requirements-image.lock requirements-build.lock ./
RUN /opt/downburst/bin/pip install --no-cache-dir --require-hashes -r requirements-image.lock -r requirements-build.lock
COPY pyproject.toml README.md LICENSE ./
COPY core core
COPY api api
COPY scheduler scheduler
COPY services services
COPY workers/downburst_worker workers/downburst_worker
RUN /opt/downburst/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM ${PYTHON_IMAGE}
RUN useradd --system --uid 7370 --home-dir /var/lib/downburst --shell /usr/sbin/nologin downburst \
    && install -d -o downburst -g downburst -m 0750 /var/lib/downburst /var/lib/downburst-tokens
COPY --from=python-build /opt/downburst /opt/downburst
COPY --from=dashboard-build /build/dist /usr/share/downburst/dashboard
COPY --from=node-build /build/target/release/downburst-node /usr/local/bin/downburst-node
# A container's own loopback is of no use to others, so both ports listen on every address; publish only what is meant
# to be reached, and keep HTTP behind a proxy that knows its users.
ENV PATH=/opt/downburst/bin:$PATH \
    DOWNBURST_DATA_DIR=/var/lib/downburst \
    DOWNBURST_DASHBOARD_DIR=/usr/share/downburst/dashboard \
    DOWNBURST_NODE=/usr/local/bin/downburst-node \
    DOWNBURST_HTTP=0.0.0.0:7371 \
    DOWNBURST_SITES=0.0.0.0:7370
USER downburst
WORKDIR /var/lib/downburst
VOLUME /var/lib/downburst
EXPOSE 7370 7371
CMD ["downburst", "hub"]
