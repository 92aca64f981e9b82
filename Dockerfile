# One image for each of Tally's own processes: `control` asks git for refs and runs no code of a module; `builder` holds
# the toolchains. Add to `builder` what your modules build with.
FROM node:20.19.5-bookworm-slim AS build
WORKDIR /tally
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY tsconfig.json ./
COPY src src
COPY workflows workflows
COPY activities activities
COPY workers workers
RUN npm run build && npm prune --omit=dev

FROM node:20.19.5-bookworm-slim AS control
RUN apt-get update \
  && apt-get install -y --no-install-recommends ca-certificates git openssh-client \
  && rm -rf /var/lib/apt/lists/* \
  && install -d -o node -g node /var/lib/tally
WORKDIR /tally
ENV NODE_ENV=production
COPY --from=build /tally /tally
COPY bin bin
COPY docker/builder-account.js docker/builder-account.js
USER node
EXPOSE 7400
CMD ["node", "dist/workers/control.js"]

FROM golang:1.25.3-bookworm AS go

FROM node:20.19.5-bookworm-slim AS builder
RUN apt-get update \
  && apt-get install -y --no-install-recommends ca-certificates git iproute2 openssh-client python3 python3-pip python3-venv util-linux \
  && rm -rf /var/lib/apt/lists/* \
  && install -d /var/lib/tally
COPY --from=go /usr/local/go /usr/local/go
ENV NODE_ENV=production PATH=/usr/local/go/bin:$PATH
WORKDIR /tally
COPY --from=build /tally /tally
# Root inside the container: only so can it put the commands of a module into namespaces without network.
CMD ["node", "dist/workers/builder.js"]
