#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the pages of docs/ as a site that opens from the disk: build-site/index.html. Its generator
# comes from PyPI into .venv-site, once; PYTHON=/path/python3 says which Python makes that folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly python=${PYTHON:-python3} wanted=tools/requirements-site.txt venv=.venv-site

say() { printf 'docs-site: %s\n' "$*"; }
die() { say "$*" >&2; exit 1; }

install() {
  local reason
  command -v "$python" >/dev/null || die "no $python: install Python 3.10 or newer, or set PYTHON=/path/python3."
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || die "$python is older than Python 3.10: set PYTHON=/path/python3."
  "$python" -c 'import ensurepip, venv' 2>/dev/null || die "$python has no venv: install it (Debian, Ubuntu: apt-get install python3-venv)."
  say "$(grep -o '^mkdocs-material==.*' $wanted) into $venv, a download of about 25 MB"
  mkdir -p .cache
  "$python" -m venv --clear $venv >.cache/pip-site.log 2>&1 || die "$python could not make $venv; see .cache/pip-site.log."
  if ! $venv/bin/python3 -m pip install --disable-pip-version-check -q --retries 1 --timeout 10 -r $wanted 2>.cache/pip-site.log; then
    reason=$(grep '^ERROR' .cache/pip-site.log | tail -n 1) || true
    ! grep -q 'Retrying.*onnect' .cache/pip-site.log ||
      reason="the package index cannot be reached; only a second call does without network"
    die "pip could not install what $wanted names (${reason:-see .cache/pip-site.log})."
  fi
  cp $wanted $venv/installed  # last, so an interrupted installation is taken up again
}

cmp -s $wanted $venv/installed || install
# Strict: a link or an anchor that leads nowhere is an error.
NO_MKDOCS_2_WARNING=1 $venv/bin/python3 -m mkdocs build --strict --quiet --config-file tools/mkdocs.yml
say "build-site/index.html: open it in a browser"
