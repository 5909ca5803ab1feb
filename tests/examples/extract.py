#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the example in each public header's comment into a function, so that a compiler reads it.

    extract.py OUTPUT HEADER...

An example is the first run of comment lines that are indented by three blanks after the slashes. A
header without one is an error: each public header shows how it is used.
"""
import pathlib
import sys

# What the examples take for granted. As members, so that an example may declare the same names itself.
PREAMBLE = """// Made by tests/examples/extract.py from the headers' comments.
#include <ATen/Functions.h>

#include <cassert>
#include <functional>
#include <iostream>

{includes}
struct Examples {{
  int argc;
  char** argv;
  const chapter::Info kChapter;
  chapter::Options options;
  chapter::Error error;
  prof::Profiler& profiler;
  trace::Trace trace;
  trace::Averages averages;
  std::string json;
  std::int64_t peak, total_ns;
  at::Tensor q, k, v, mask;
  std::function<void()> forward;
  at::Tensor attention(at::Tensor, at::Tensor, at::Tensor, at::Tensor = {{}});
"""

FUNCTION = """
  int {name}() {{
    {{
      {code}
    }}
    return 0;
  }}
"""


def example(path):
    code = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("//   "):
            code.append(line[5:])
        elif code:
            break
    if not code:
        sys.exit(f"{path}: no example in its comment (lines that begin with //   )")
    return code


def main():
    output, *headers = map(pathlib.Path, sys.argv[1:])
    relative = [header.relative_to(header.parent.parent) for header in headers]
    text = PREAMBLE.format(includes="".join(f'#include "{header}"\n' for header in relative))
    for header, name in zip(headers, relative):
        text += FUNCTION.format(name=str(name).replace("/", "_").replace(".", "_"),
                                code="\n      ".join(example(header)))
    output.write_text(text + "};\n", encoding="utf-8")


if __name__ == "__main__":
    main()
