# handoffd in an image that has nothing else in it: no shell, no package manager, no other user.
#
#   docker build -t handoffd .
#   docker run -p 127.0.0.1:7420:7420 -v handoffd:/workspace handoffd
#
# The workspace is the volume /workspace; an empty one is filled with the example. Mount policies/ read-only over it
# to bring your own. Stop it with SIGTERM (docker stop): it finishes what is under way and leaves a checkpoint.

FROM rust:1-alpine AS build
# What the C parts of SQLite, ring and mimalloc are compiled with; musl makes the binary static.
RUN apk add --no-cache musl-dev gcc make
WORKDIR /src
COPY Cargo.toml Cargo.lock askama.toml ./
COPY src src
COPY docs docs
COPY agents agents
COPY policies policies
COPY memory/README.md memory/.gitignore memory/
COPY benches benches
RUN cargo build --release --locked --bin handoffd \
    && mkdir -p /out/workspace \
    && cp target/release/handoffd /out/handoffd

FROM scratch
COPY --from=build /out/handoffd /handoffd
# Owned by the user that runs, so that a new volume is too.
COPY --from=build --chown=65532:65532 --chmod=700 /out/workspace /workspace
USER 65532:65532
WORKDIR /workspace
VOLUME /workspace
ENV HANDOFFD_WORKSPACE=/workspace \
    HANDOFFD_LOG_FORMAT=json
EXPOSE 7420
STOPSIGNAL SIGTERM
# No HEALTHCHECK: whoever runs the container asks GET /readyz on its port, which needs no token. A command inside
# would need a client in the image that nothing else needs.
ENTRYPOINT ["/handoffd"]
# Inside a container only the container's own address can be reached from outside. Every caller needs a token all the
# same; use [tls] when the port is published beyond this machine.
CMD ["serve", "--listen", "0.0.0.0:7420"]
