# Builds, tests and shows Fieldstone.
#
#   make check           what was touched since main, within two minutes
#   make test            everything: pure Go, Open MPI, MPICH
#   make demo            a solver is killed and restarts on another rank count
#   make MPI=mpich demo  the same with MPICH
#
# Nothing has to be done before: `deps` installs what is missing.

MPI ?= openmpi
SHELL := /bin/bash
OUT := build/$(MPI)
WITH := scripts/with-mpi $(MPI)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME ?= 10s
BENCH ?= .
QUICK ?=
EVERY ?=
CALL ?=
JOBS ?=
CASE ?=
DEVICE ?= cuda:0
VENDOR ?= $(firstword $(subst :, ,$(DEVICE)))
KERNELS := device examples
MUMAX := ./device/cuda/mumax
# The systems and processors beside linux/amd64 on which everything without a tag builds
# and passes vet. Those of CROSS differ most from each other: `lint` looks at them.
CROSS := linux/arm64 linux/386 darwin/arm64 windows/amd64 freebsd/amd64 js/wasm
CROSS_ALL := $(CROSS) darwin/amd64 windows/arm64 windows/386 freebsd/arm64 wasip1/wasm
# What is tested on 32 bits within seconds (make PACKAGES_386=./... test-386 tests all), and
# what WebAssembly runs.
PACKAGES_386 := ./grid ./pack ./record ./field ./runfile ./internal/vfs ./internal/shm ./cmd/fieldstone
PACKAGES_WASM := ./grid ./pack ./record ./internal/signals
# Where the compilers are with which the fake drivers of GPUs are built, a test that
# needs them must not be skipped.
export FIELDSTONE_REQUIRE_FAKEGPU = $(if $(and $(shell command -v gcc),$(shell command -v g++)),1)
# `deps` installs h5py, xarray, pandas and h5dump: tests that need them must not be skipped.
export FIELDSTONE_REQUIRE_H5PY = 1
CHECKPTR := -gcflags=all=-d=checkptr
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: all build deps check test cross cross-all test-386 test-wasm test-go test-race test-hdf5 test-mumax test-device-check test-openmpi test-mpich faults lint generate kernel-deps demo bench bench-runfile bench-runfile-clone bench-go bench-build bench-deps device-check device-check-build big fuzz race clean

all: build

# Programs: the tool needs no MPI, and HDF5 only for the files of runs; the examples need
# both.
build: deps
	if scripts/with-hdf5 true; then scripts/with-hdf5 go build -o build/ ./cmd/...; else CGO_ENABLED=0 go build -o build/ ./cmd/...; fi
	$(WITH) go build -o $(OUT)/ ./examples/...
	for program in dendrite allencahn; do scripts/check-linkage $(MPI) $(OUT)/$$program || exit; done

deps:
	@scripts/deps

# Part by part, with the time that each takes.
TEST_PARTS := test-go $(if $(filter x86_64,$(shell uname -m)),test-386) test-race test-hdf5 test-mumax test-device-check test-openmpi test-mpich
test: deps
	@for part in $(TEST_PARTS); do \
		TIMEFORMAT="== $$part: %0R s, CPU %0U s and %0S s in the system"; \
		time $(MAKE) --no-print-directory $$part || exit; \
	done

# The loop of a developer; see docs/testing.md.
check:
	scripts/check

# Without any tag: as on a machine with Go alone, and with cgo.
test-go:
	CGO_ENABLED=0 go build ./...
	CGO_ENABLED=0 go test -timeout=20m ./...
	go vet ./...

# The race detector brings the checks of unsafe pointers along. Packages that HDF5 makes a
# difference to have their turn with it, in test-hdf5.
test-race: deps
	go test -race -timeout=20m $$(go list ./... | grep -vxFf <(scripts/with-hdf5 scripts/packages-with-mpi h5))

race: test-race test-hdf5

# Sizes that don't fit an int of 32 bits. Programs for 386 run on amd64, without a C library.
test-386:
	GOARCH=386 CGO_ENABLED=0 go test -timeout=20m $(PACKAGES_386)
	GOARCH=386 CGO_ENABLED=0 go test -timeout=20m -run='Metadata|Moving|Golden|ReadBox|Copies|Sizes|Rounds' ./publish ./brick

# With Node.
test-wasm:
	GOOS=js GOARCH=wasm CGO_ENABLED=0 go test -timeout=20m -exec "$$(go env GOROOT)/lib/wasm/go_js_wasm_exec" $(PACKAGES_WASM)

# What HDF5 makes a difference to, without MPI.
test-hdf5: deps
	scripts/with-hdf5 go build ./...
	scripts/with-hdf5 bash -c 'go test -race -timeout=20m $$(scripts/packages-with-mpi h5)'

# The adapter to mumax³'s bindings, on the fake driver; see scripts/with-mumax.
test-mumax: deps
	scripts/with-mumax go test -race -timeout=20m $(MUMAX)

# What checks a real device runs from start to end, on the fake driver, with next to nothing
# around it.
test-device-check: deps
	bench/device-build cuda
	bench/device-check-bare cuda:0

# The tests that can differ with MPI; the others run without it above. Two packages at a
# time: much of a launch is waiting, and ranks that wait give their core away. What is built
# first has the flags of the tests, so that it is built once.
test-openmpi test-mpich: test-%: deps
	scripts/with-mpi $* go build $(CHECKPTR) ./...
	scripts/with-mpi $* bash -c 'go test -count=1 -p=2 -timeout=20m $(CHECKPTR) -run="$$(go run ./internal/mpitest/mpitests)" $$(go run ./internal/mpitest/mpitests -packages)'

# The calls of the library with each call on the filesystem failing in turn, and the table
# of docs/reliability.md: 20 minutes. CALL=regexp takes only some of the calls;
# EVERY=1 fails all of the calls of the long ones too. JOBS=n lets n jobs share the faults
# of a library: one takes little more than one processor.
faults: deps
	@mkdir -p build && rm -f build/faults
	@failed=; for mpi in openmpi mpich; do \
		FIELDSTONE_FAULTS=$(if $(filter-out 0 no false,$(EVERY)),every,whole) FIELDSTONE_FAULTS_CALL='$(CALL)' FIELDSTONE_FAULTS_JOBS=$(JOBS) FIELDSTONE_FAULTS_TABLE=$$PWD/build/faults \
			scripts/with-mpi $$mpi go test -count=1 -timeout=10h -run=TestEveryCallFails ./internal/faultfs || failed=1; \
	done; \
	printf '%s\n' '| library | call | driver | tried | clean | hung | lost | wrong |' '|---|---|---|---|---|---|---|---|'; \
	cat build/faults && [ -z "$$failed" ]

lint: deps kernel-deps
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "gofmt differs:" $$files; exit 1; fi
	go vet ./...
	scripts/with-hdf5 go vet ./...
	$(WITH) go vet ./...
	go run $(STATICCHECK) ./...
	scripts/with-hdf5 go run $(STATICCHECK) ./...
	$(WITH) go run $(STATICCHECK) ./...
	scripts/with-mumax go vet $(MUMAX)
	scripts/with-mumax go run $(STATICCHECK) $(MUMAX)
	scripts/kernels -check $(KERNELS)
	scripts/kernels -assemble $(KERNELS)
	@scripts/kernels -resources $(KERNELS) 2>/dev/null | grep gfx | while IFS= read -r row; do grep -qxF "$$row" docs/gpu.md || { echo "docs/gpu.md lacks what scripts/kernels -resources says: $$row"; exit 1; }; done
	$(MAKE) cross

# vet checks the types of tests too; the tool is linked besides.
cross: pairs = $(CROSS)
cross-all: pairs = $(CROSS_ALL)
cross cross-all:
	@export CGO_ENABLED=0; for pair in $(pairs); do \
		echo "go vet ./... for $$pair"; \
		export GOOS=$${pair%/*} GOARCH=$${pair#*/}; \
		go vet ./... && go build -o /dev/null ./cmd/fieldstone || exit; \
	done

# What drivers of devices load, from the kernels' source. It is committed, so that
# nobody else needs the compiler.
generate: kernel-deps
	scripts/kernels $(KERNELS)

kernel-deps:
	@scripts/deps kernels

demo: build
	$(OUT)/demo -solver $(OUT)/dendrite -mpirun mpirun.$(MPI) -mpi $(MPI)

# Compares Fieldstone with the floors of the machine and with other ways; see
# bench/README.md. CASE=regexp takes only some of the cases.
bench: bench-build
	build/bench $(if $(filter-out 0 no false,$(QUICK)),-quick) $(if $(CASE),-case '$(CASE)')

# Files of runs alone, against h5py, and what a checkpoint of many scalars costs.
bench-runfile: deps
	go build -o build/bench ./bench
	scripts/with-hdf5 go build -o build/bench-runfile ./bench/runfile
	build/bench -component 'run files' -results bench/results/runfile $(if $(filter-out 0 no false,$(QUICK)),-quick) $(if $(CASE),-case '$(CASE)')
	$(if $(CASE),,build/bench-runfile checkpoints $(if $(filter-out 0 no false,$(QUICK)),-quick))

# What a checkpoint costs after many saved states, on filesystems that clone and on one
# that doesn't. As root, who mounts them from images.
bench-runfile-clone: deps
	scripts/with-hdf5 bench/runfile-clone.sh

bench-build: deps bench-deps
	go build -o build/bench ./bench
	scripts/with-hdf5 go build -o build/bench-runfile ./bench/runfile
	@for mpi in openmpi mpich; do bench/build-for $$mpi; done

# What the peers need. The benchmark does without what can't be had.
bench-deps:
	-@scripts/deps bench

# The tests and the measurements on a real GPU; see docs/gpu.md. What the first one
# builds runs on a machine without Go, with devices of one vendor: VENDOR, or DEVICE's.
device-check-build:
	bench/device-build $(VENDOR)

device-check:
	bench/device-build -all $(VENDOR)
	bench/device-check.sh $(DEVICE)

bench-go: deps
	$(WITH) go test -p=1 -run='^$$' -bench='$(BENCH)' -benchmem ./...

# More than 2^31 cells and 2 GiB per rank: takes 19 GB under TMPDIR and minutes.
big: deps
	FIELDSTONE_BIG=1 $(WITH) go test -count=1 -v -timeout=90m -run='^TestMoreThan2GiBPerRank$$' ./brick

# Every fuzz target of every package, FUZZTIME each.
fuzz: deps
	scripts/with-hdf5 scripts/fuzz $(FUZZTIME)

clean:
	rm -rf build
