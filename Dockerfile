# A static binary, nothing else, not root.
FROM golang:1.26 AS go

FROM go AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -tags grpcnotrace -ldflags "-s -w -X main.version=${VERSION}" -o /out/rebound ./cmd/rebound

FROM scratch AS base
COPY --from=go /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
USER 65532:65532
ENV REBOUND_LISTEN=0.0.0.0:8080
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s CMD ["/rebound", "healthcheck"]
ENTRYPOINT ["/rebound"]
CMD ["serve"]

# Of a release: the binary that is in the archives, too.
FROM base AS released
ARG TARGETPLATFORM
COPY ${TARGETPLATFORM}/rebound /rebound

# Of a checkout.
FROM base
COPY --from=build /out/rebound /rebound
