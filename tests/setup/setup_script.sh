#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tools/setup.sh on machines that this one is not: a copy of it in an empty folder, with stand-ins
# for python3, cmake, c++, df, apt-get and so on first on PATH. They do what files in $fake say and
# note their calls, so nothing is downloaded or installed.
# shellcheck disable=SC2016  # the stand-ins' own variables
set -euo pipefail
readonly source_dir=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
readonly work fake=$work/fake
failures=0

# stand_in <command> <shell code>
stand_in() {
  printf '#!/bin/sh\n%s\n' "$2" >"$fake/$1"
  chmod +x "$fake/$1"
}

# A new, empty checkout and a machine where all is well: no .venv yet, CPU index reachable.
fresh() {
  rm -rf "$work/clone" "$fake"
  mkdir -p "$work/clone/tools" "$fake"
  cp "$source_dir/tools/setup.sh" "$work/clone/tools/"
  cp "$source_dir/requirements.txt" "$work/clone/"
  # python3: `-m venv` puts a copy of itself into .venv, `-m pip` fails if $fake/pip_fails exists,
  # version and module checks fail if the file named beside them exists.
  cat >"$fake/python3" <<'PYTHON'
#!/usr/bin/env bash
case "$*" in
  *'-m venv'*) mkdir -p .venv/bin && cp "$0" .venv/bin/python3 ;;
  *'-m pip --version'*) ;;
  *'-m pip install'*)
    echo "pip install ${*:5}" >>"$FAKE/calls"
    if [ -e "$FAKE/pip_fails" ]; then cat "$FAKE/pip_fails" >&2; exit 1; fi ;;
  *urlopen*) [ ! -e "$FAKE/no_cpu_index" ] ;;
  *version_info*) [ ! -e "$FAKE/old_python" ] ;;
  *ensurepip*) [ ! -e "$FAKE/no_venv" ] ;;
  *find_spec*) [ ! -e "$FAKE/no_torch" ] ;;
  *--version*) echo 'Python 3.9.2' ;;
esac
PYTHON
  stand_in cmake 'if [ "$1" = --version ]; then echo "cmake version 3.28.1"; exit; fi
echo "cmake $*" >>"$FAKE/calls"'
  stand_in ninja ''
  stand_in nvidia-smi 'exit 1'
  stand_in c++ 'echo "#define __GNUC__ 12"'
  stand_in df 'echo x; echo x 1 1 50000000 1% /'
  stand_in id 'echo 1000'
  stand_in dpkg-query 'shift $(($# - 1)); grep -qx "$1" "$FAKE/missing" || echo "ii  3.7"'
  stand_in dpkg 'exit 0'
  stand_in apt-get 'echo "apt-get $*" >>"$FAKE/calls"
if [ -e "$FAKE/apt_fails" ]; then echo "E: no network" >&2; exit 100; fi'
  stand_in apt-cache 'echo "catch2 | 3.7.1-1 | x"; echo "catch2 | 2.13-1 | x"'
  chmod +x "$fake/python3"
  touch "$fake/missing" "$fake/calls"
}

# run [VARIABLE=value...]: calls the script; sets `status` and `out`.
run() {
  status=0
  out=$(cd "$work/clone" && env -u CMAKE_PREFIX_PATH -u PYTHON -u LIBTORCH -u CXX \
    FAKE="$fake" PATH="$fake:/usr/bin:/bin" "$@" tools/setup.sh release 2>&1 </dev/null) || status=$?
}

check() {  # check <what> <command...>
  if "${@:2}"; then return; fi
  echo "FAILED: $1: ${*:2}"
  echo "  status $status, output: $out"
  echo "  calls: $(tr '\n' ';' <"$fake/calls")"
  failures=$((failures + 1))
}
says() { grep -qF -- "$1" <<<"$out"; }
called() { grep -qF -- "$1" "$fake/calls"; }
not() { ! "$@"; }
one_line() { [ "$(wc -l <<<"$out")" = 1 ]; }

# fails_with <exit code> <text> <what>: one line, no configure, no trace of a finished set-up.
fails_with() {
  check "$3" [ "$status" = "$1" ]
  check "$3" says "$2"
  check "$3" one_line
  check "$3" not called "cmake --preset"
  check "$3" [ ! -e "$work/clone/.venv/libtorch" ]
}

# 1. What is missing is one line that says what to do.
fresh; run LIBTORCH=rocm
fails_with 2 'LIBTORCH=cuda or LIBTORCH=cpu' 'unknown LIBTORCH'
fresh; stand_in uname 'echo Darwin'; run
fails_with 1 'Linux only' 'macOS'
fresh; stand_in c++ 'echo "#define __GNUC__ 9"'; run
fails_with 1 'g++ 9 is too old' 'old g++'
fresh; stand_in c++ 'echo "#define __GNUC__ 4"; echo "#define __clang_major__ 13"'; run
fails_with 1 'clang 13 is too old' 'old clang'
fresh; run CXX=no-such-compiler
fails_with 1 'no C++ compiler (no-such-compiler)' 'no compiler'
fresh; touch "$fake/old_python"; run
fails_with 1 'needs Python 3.10 or newer' 'old python'
fresh; touch "$fake/no_venv"; run
fails_with 1 'apt-get install python3-venv' 'python without venv'
fresh; touch "$fake/no_torch"; run PYTHON=python3
fails_with 1 'PYTHON=python3 is no Python that has torch' 'PYTHON without torch'
fresh; stand_in df 'echo x; echo x 1 1 11000000 1% /'; run LIBTORCH=cuda
fails_with 1 'needs 12 GB of free disk' 'little disk for the CUDA build'
fresh; stand_in df 'echo x; echo x 1 1 1000000 1% /'; run LIBTORCH=cpu
fails_with 1 'needs 2 GB of free disk' 'little disk for the CPU build'

# 2. Which LibTorch.
if [ ! -e /dev/nvidia0 ] && [ ! -d /proc/driver/nvidia/gpus ]; then  # those have no stand-in
  fresh; run
  check 'no GPU' called 'torch==2.11.0+cpu'
fi
fresh; run LIBTORCH=cpu
check 'LIBTORCH=cpu' [ "$status" = 0 ]
check 'LIBTORCH=cpu' called 'torch==2.11.0+cpu'
check 'LIBTORCH=cpu' called 'cmake --preset release'
fresh; stand_in nvidia-smi 'echo "GPU 0: NVIDIA H200"'; run
check 'GPU' called 'pip install torch==2.11.0'
check 'GPU' not called '+cpu'
fresh; touch "$fake/no_cpu_index"; run LIBTORCH=cpu
check 'no CPU index' says "does not answer: taking PyPI's build"
check 'no CPU index' not called '+cpu'
check 'no CPU index' [ "$status" = 0 ]
fresh; run LIBTORCH=cuda
check 'LIBTORCH=cuda' not called '+cpu'
fresh; run PYTHON=python3
check 'PYTHON' not called pip
check 'PYTHON' called '-DPROF_PYTHON=python3'
check 'PYTHON' [ ! -e "$work/clone/.venv" ]
fresh; mkdir -p "$work/lib torch/lib"; touch "$work/lib torch/lib/libtorch_cpu.so"
run CMAKE_PREFIX_PATH="/nowhere:$work/lib torch"
check 'CMAKE_PREFIX_PATH' not called pip
check 'CMAKE_PREFIX_PATH' called "-DCMAKE_PREFIX_PATH=/nowhere;$work/lib torch"

# 3. A second call fetches nothing, whatever LibTorch came, and asks for nothing.
fresh; run LIBTORCH=cpu; : >"$fake/calls"; touch "$fake/no_cpu_index"; run
check 'second call' not called pip
check 'second call' called 'cmake --preset release'
run LIBTORCH=cpu
check 'second call by hand' not called pip
run LIBTORCH=cuda
check 'another LibTorch' called 'torch==2.11.0'
: >"$fake/calls"; run
check 'what is there stays' not called pip
fresh; touch "$fake/no_cpu_index"; run LIBTORCH=cpu; : >"$fake/calls"; run LIBTORCH=cuda
check 'what came instead counts too' not called pip
fresh; run LIBTORCH=cpu; echo 'ERROR: killed' >"$fake/pip_fails"; run LIBTORCH=cuda
check 'a change that failed' [ ! -e "$work/clone/.venv/libtorch" ]

# 4. An interrupted set-up is taken up again; a changed pin is installed.
fresh; echo 'ERROR: Operation cancelled by user' >"$fake/pip_fails"; run LIBTORCH=cuda
check 'interrupted' [ "$status" = 1 ]
check 'interrupted' says 'Operation cancelled by user'
check 'interrupted' [ ! -e "$work/clone/.venv/libtorch" ]
: >"$fake/calls"; rm "$fake/pip_fails"; run LIBTORCH=cuda
check 'resumed' called 'torch==2.11.0'
check 'resumed' [ "$status" = 0 ]
: >"$fake/calls"; sed -i 's/^torch==.*/torch==2.12.0/' "$work/clone/requirements.txt"; run
check 'changed pin' called 'torch==2.12.0'
fresh; echo 'WARNING: Retrying (Retry(total=4, connect=None)) after connection broken' >"$fake/pip_fails"
run LIBTORCH=cuda
check 'no network' says 'the package index cannot be reached'

# 5. cmake and ninja come from PyPI only where the system's are missing or too old.
fresh; run
check 'new cmake' not called 'cmake=='
fresh; sed -i 's/3.28.1/3.22.1/' "$fake/cmake"; run
check 'old cmake' called 'pip install cmake=='
check 'old cmake' not called 'ninja=='
fresh; sed -i 's/3.28.1/3.22.1/' "$fake/cmake"; run PYTHON=python3
check 'old cmake beside PYTHON' says 'cmake 3.25 or newer and ninja are needed'

# 6. Packages: installed as root, asked for by one line otherwise, and not tried twice.
fresh; printf 'zlib1g-dev\ncatch2\n' >"$fake/missing"; run
check 'packages, a user' says 'as root: apt-get install zlib1g-dev catch2'
check 'packages, a user' not called apt-get
run
check 'packages, said once' not says 'as root'
fresh; printf 'zlib1g-dev\ncatch2\n' >"$fake/missing"; stand_in id 'echo 0'; run
check 'packages, root' called 'apt-get install -y --no-install-recommends zlib1g-dev catch2=3.7.1-1'
check 'packages, root' says 'installing zlib1g-dev catch2'
fresh; echo catch2 >"$fake/missing"; touch "$fake/apt_fails"; stand_in id 'echo 0'; run
check 'apt-get fails' says 'apt-get failed (E: no network)'
check 'apt-get fails' [ "$status" = 0 ]
: >"$fake/calls"; run
check 'apt-get failed before' not called apt-get

# 7. A failed configure is one line too.
fresh; stand_in cmake 'if [ "$1" = --version ]; then echo "cmake version 3.28.1"; exit; fi
printf "CMake Error at a.cmake:1 (message):\n  No good\n  reason.\n\n\n-- Incomplete\n"; exit 1'; run
check 'configure fails' says 'configuring failed: No good reason. (all of it: .cache/'
check 'configure fails' [ "$status" = 1 ]

[ "$failures" = 0 ] || exit 1
echo 'all as expected'
