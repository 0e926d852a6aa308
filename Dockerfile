# Pulsarium in the place of apachepulsar/pulsar: the same folders, programs, ports and log lines.
#   docker build -t pulsarium .
# Behind a proxy with an authority of its own: --secret id=ca,src=FILE --build-arg PIP_CERT=/run/secrets/ca
ARG BASE=debian:trixie-slim
FROM ${BASE} AS base
# Beside Python the programs that scripts call in apachepulsar/pulsar: busybox has wget, ps and nslookup there too.
# Without Python's tests and help texts; byte code comes from the build, for what is in use.
RUN apt-get update -qq \
    && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
        busybox curl netcat-openbsd openssl python3 >/dev/null \
    && for each in wget ps nslookup; do [ -e "/usr/bin/$each" ] || ln -s busybox "/usr/bin/$each"; done \
    && useradd --uid 10000 --gid 0 --home-dir /pulsar --no-create-home --shell /bin/bash pulsar \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/lib/dpkg/*-old /var/log/* \
    && rm -rf /usr/lib/python3*/test /usr/lib/python3*/pydoc_data \
    && find /usr/lib/python3* -name __pycache__ -prune -exec rm -rf {} +

FROM base AS build
RUN apt-get update -qq \
    && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends binutils python3-venv >/dev/null
ARG PIP_CERT
RUN python3 -m venv /build && python3 -m venv --without-pip /opt/pulsarium
COPY pyproject.toml uv.lock /src/
RUN --mount=type=secret,id=ca /build/bin/pip install --quiet --no-cache-dir uv \
    && /build/bin/uv export --project /src --quiet --frozen --no-default-groups --extra auth --extra client \
        --no-emit-project --output-file /build/locked.txt \
    && /build/bin/pip --python /opt/pulsarium/bin/python install --quiet --no-compile --no-cache-dir \
        --require-hashes --only-binary :all: -r /build/locked.txt
COPY . /src
RUN --mount=type=secret,id=ca /build/bin/pip --python /opt/pulsarium/bin/python install --quiet --no-compile \
    --no-cache-dir --no-deps /src
# Any user is to write below /pulsar, whatever the group.
RUN mkdir -p /pulsar/data /pulsar/init.d /pulsar/logs /image/opt \
    && cp -a /src/container/bin /pulsar/bin \
    && /opt/pulsarium/bin/python -P -m pulsarium.cli.pulsar.conf /pulsar/conf \
    && chmod a+rwX /pulsar /pulsar/conf /pulsar/conf/* /pulsar/data /pulsar/logs \
    && find /opt/pulsarium -name '*.so*' -exec strip --strip-unneeded {} + \
    && find /opt/pulsarium /usr/lib/python3* \( -name '*.pyi' -o -name tests -o -name __pycache__ \) -prune -exec rm -rf {} + \
    && /src/container/warm-up \
    && find /usr/lib/python3* -name '*.pyc' -exec cp --parents -t /image {} + \
    && mv /opt/pulsarium /image/opt && mv /pulsar /image

FROM base
LABEL org.opencontainers.image.title="Pulsarium" \
    org.opencontainers.image.description="An emulator of the Apache Pulsar broker, in the place of apachepulsar/pulsar" \
    org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /image /
ENV PATH=/pulsar/bin:/opt/pulsarium/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PULSAR_HOME=/pulsar \
    PYTHONDONTWRITEBYTECODE=1
WORKDIR /pulsar
# As apachepulsar/pulsar has it, and as any other.
USER 10000
EXPOSE 6650 8080
HEALTHCHECK --interval=5s --timeout=6s --start-period=10s CMD ["healthcheck"]
CMD ["bin/pulsar", "standalone"]
