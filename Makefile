# SPDX-License-Identifier: Apache-2.0
# A thin door: tools/setup.sh fetches and configures, CMakePresets.json says how to build.
CHAPTERS := $(shell sed -n 's/^prof_add_chapter.\([0-9a-z_]*\).*/\1/p' chapters/CMakeLists.txt)
SOURCES = $(shell git ls-files --cached --others --exclude-standard '*.cpp' '*.h' '*.cu' '*.cuh')

# What set-up had to fetch because the system lacks it; see install_cmake_and_ninja there.
export PATH := $(CURDIR)/.venv/tools:$(PATH)

.DEFAULT_GOAL := help
FUZZ_SECONDS ?= 60
.PHONY: help setup build run test asan fuzz $(CHAPTERS) diff beside look results docs docs-check docs-site format format-check bench-table bench-reader bench-overhead bench-kernels bench-decode clean distclean

help:
	@echo 'make run              set up what is missing, build, run the chapters: tables here, traces in traces/'
	@echo 'make test             the same set-up, then every test'
	@echo 'make asan             the tests that need no LibTorch, under AddressSanitizer and UBSan'
	@echo 'make fuzz             hostile files against every command of readtrace, with clang; FUZZ_SECONDS=60'
	@echo 'make 01_naive         build and run one chapter; ARGS="--seq 2048" goes to it, ARGS=--help lists'
	@echo 'make diff N=02        what changed from the chapter before'
	@echo 'make beside N=01      the chapter in C++ and in Python, op by op'
	@echo 'make look N=01        its recording on an H200: table, facts, figure, quiz; needs no LibTorch'
	@echo 'make results          record this machine'"'"'s traces and tables into docs/results/'
	@echo 'make docs             fill README and docs/ from recordings and sources; docs-check only looks'
	@echo 'make docs-site        the pages as a site that opens from the disk: build-site/index.html'
	@echo 'make bench-table      file to table, against Python'
	@echo 'make bench-reader     files of 1e5 events, 1 GB and 1e7 events (4 GB of disk, 10 GB of memory)'
	@echo 'make bench-overhead   what the profiler itself costs'
	@echo 'make bench-kernels    the kernels of 04 against the backends of LibTorch'
	@echo 'make bench-decode     decode of the same library against them'
	@echo 'make format           lay out the sources; format-check only looks'
	@echo 'make clean            remove build/; distclean also .venv/, .venv-site/ and traces/'
	@echo
	@echo 'chapters: $(CHAPTERS)'
	@echo 'LIBTORCH=cuda|cpu, PYTHON=/path/python3 (its torch), CMAKE_PREFIX_PATH=/path/libtorch choose the LibTorch'

setup:
	@tools/setup.sh release $(CMAKE_ARGS)

build: setup
	@cmake --build --preset release

run: setup
	@cmake --build --preset release --target $(CHAPTERS)
	@set -e; for chapter in $(CHAPTERS); do build/$$chapter $(ARGS); done

$(CHAPTERS): setup
	@cmake --build --preset release --target $@
	@build/$@ $(ARGS)

test: build
	@tools/test.sh release $(ARGS)

asan:
	@tools/setup.sh asan $(CMAKE_ARGS)
	@cmake --build --preset asan
	@tools/test.sh asan $(or $(ARGS),-LE parity)

# What it finds lies in build-fuzz/found; give such a file to build-fuzz/fuzz_readtrace to see it again.
fuzz:
	@tools/setup.sh fuzz $(CMAKE_ARGS)
	@cmake --build --preset fuzz
	@rm -rf build-fuzz/seeds && python3 tests/fuzz/seeds.py build-fuzz/seeds && mkdir -p build-fuzz/corpus build-fuzz/found
	@build-fuzz/fuzz_readtrace -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048 -max_len=16384 \
	  -dict=tests/fuzz/readtrace.dict -artifact_prefix=build-fuzz/found/ -print_final_stats=1 -verbosity=1 \
	  $(ARGS) build-fuzz/corpus build-fuzz/seeds 2>build-fuzz/log && tail -n 8 build-fuzz/log || \
	  { grep -v '^#' build-fuzz/log | tail -n 60; exit 1; }

# The chapter whose number is N beside the one before it in the list.
diff:
	@set -- $(CHAPTERS); before=; for chapter; do \
	  case $$chapter in "$(N)"_*) break ;; esac; before=$$chapter; chapter=; done; \
	if [ -z "$(N)" ] || [ -z "$$chapter" ] || [ -z "$$before" ]; then \
	  echo 'make diff N=02: N is the number of a chapter that has one before it' >&2; exit 2; fi; \
	git --no-pager diff --no-index chapters/$$before/main.cpp chapters/$$chapter/main.cpp || [ $$? = 1 ]

# The chapter of number N in C++ and in Python, their ops side by side.
beside: setup
	@chapter=$(filter $(N)_%,$(CHAPTERS)); \
	if [ -z "$(N)" ] || [ -z "$$chapter" ]; then echo 'make beside N=01: N is the number of a chapter' >&2; exit 2; fi; \
	cmake --build --preset release --target $$chapter readtrace && \
	$(or $(PYTHON),.venv/bin/python3) tools/beside.py $$chapter $(ARGS)

# What a chapter looks like, from its recording: no LibTorch, no GPU, no long download. ARGS=flash: that one only.
look:
	@chapter=$(filter $(N)_%,$(CHAPTERS)); \
	if [ -z "$(N)" ] || [ -z "$$chapter" ]; then echo 'make look N=01: N is the number of a chapter' >&2; exit 2; fi; \
	tools/setup.sh look $(CMAKE_ARGS) && cmake --build --preset look --target readtrace && tools/look.sh $$chapter $(ARGS)

results: setup
	@cmake --build --preset release --target $(CHAPTERS) readtrace
	@tools/record.sh $(CHAPTERS)

# Ratios within one run, against Python and against LibTorch's bare calls. The trace is made once.
bench-table:
	@tools/setup.sh release -DPROF_BENCH=ON $(CMAKE_ARGS)
	@cmake --build --preset release --target readtrace bench_reader
	@$(or $(PYTHON),.venv/bin/python3) bench/bench_table.py build/readtrace build/bench/events_500000.json
	@build/bench_reader build/bench/events_500000.json

bench-reader:
	@tools/setup.sh release -DPROF_BENCH=ON $(CMAKE_ARGS)
	@cmake --build --preset release --target readtrace bench_reader
	@python3 bench/bench_reader.py build/bench_reader build/readtrace build/bench

bench-overhead:
	@tools/setup.sh release -DPROF_BENCH=ON $(CMAKE_ARGS)
	@cmake --build --preset release --target bench_profiler
	@$(or $(PYTHON),.venv/bin/python3) bench/bench_profiler.py build/bench_profiler

bench-kernels:
	@tools/setup.sh release -DPROF_BENCH=ON $(CMAKE_ARGS)
	@cmake --build --preset release --target bench_kernels
	@$(or $(PYTHON),.venv/bin/python3) bench/bench_kernels.py build/bench_kernels build/libattention_kernels.so --json build/bench_kernels.json

bench-decode:
	@tools/setup.sh release -DPROF_BENCH=ON $(CMAKE_ARGS)
	@cmake --build --preset release --target bench_decode
	@build/bench_decode build/libattention_kernels.so --json build/bench_decode.json

# Pages quote recordings and sources: docs fills them in, docs-check only looks.
docs:
	@python3 tools/docs.py

docs-check:
	@python3 tools/docs.py --check

docs-site:
	@tools/site.sh

format:
	@tools/setup.sh clang-format
	@.venv/bin/clang-format -i $(SOURCES)

format-check:
	@tools/setup.sh clang-format
	@.venv/bin/clang-format --dry-run --Werror $(SOURCES) && echo 'format-check: $(words $(SOURCES)) files are laid out as .clang-format says'

clean:
	rm -rf build build-cpu-debug build-asan build-fuzz build-look build-site

distclean: clean
	rm -rf .venv .venv-site .cache traces
