# For those who have a container engine; `make images` needs none, and writes the same files and settings.
#   docker build --target manager --build-arg VERSION=v2.0.0 --build-arg COMMIT="$(git rev-parse HEAD)" .
# Targets: manager (the default), cpi, vcdsim. A test in hack/images holds them against what `make images` makes.

FROM --platform=$BUILDPLATFORM golang:1.26.8-bookworm AS source
WORKDIR /src
COPY . .
ARG VERSION=v2.0.0-dev
ARG COMMIT=""
ARG TARGETARCH

FROM source AS build-cpi
RUN go run -C hack/images . --root /src --rootfs /rootfs --program cpi --arch "$TARGETARCH" --version "$VERSION" --commit "$COMMIT"

FROM source AS build-vcdsim
RUN go run -C hack/images . --root /src --rootfs /rootfs --program vcdsim --arch "$TARGETARCH" --version "$VERSION" --commit "$COMMIT"

FROM source AS build-manager
RUN go run -C hack/images . --root /src --rootfs /rootfs --program manager --arch "$TARGETARCH" --version "$VERSION" --commit "$COMMIT"

FROM scratch AS common
ARG VERSION=v2.0.0-dev
ARG COMMIT=""
LABEL org.opencontainers.image.source="https://github.com/cluster-api-provider-vcd/cluster-api-provider-vcd" \
      org.opencontainers.image.url="https://github.com/cluster-api-provider-vcd/cluster-api-provider-vcd" \
      org.opencontainers.image.documentation="https://github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/tree/main/docs" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$COMMIT"
ENV PATH=/
WORKDIR /
USER 65532:65532

FROM common AS cpi
LABEL org.opencontainers.image.title="Cloud controller manager for VMware Cloud Director" \
      org.opencontainers.image.description="Node addresses and load balancers of Kubernetes clusters on VMware Cloud Director."
COPY --from=build-cpi /rootfs /
EXPOSE 10258/tcp
ENTRYPOINT ["/opt/vcloud/bin/cloud-provider-for-cloud-director"]

FROM common AS vcdsim
LABEL org.opencontainers.image.title="vcdsim" \
      org.opencontainers.image.description="A simulator of VMware Cloud Director, to try and test with."
COPY --from=build-vcdsim /rootfs /
EXPOSE 8443/tcp
ENTRYPOINT ["/vcdsim"]
CMD ["--listen", ":8443"]

FROM common AS manager
LABEL org.opencontainers.image.title="Cluster API Provider for VMware Cloud Director" \
      org.opencontainers.image.description="The controllers that make Kubernetes clusters on VMware Cloud Director."
COPY --from=build-manager /rootfs /
EXPOSE 8443/tcp 9440/tcp 9443/tcp
ENTRYPOINT ["/manager"]
