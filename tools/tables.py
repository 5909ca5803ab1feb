# SPDX-License-Identifier: Apache-2.0
"""Takes a printed profiler table apart again."""
import re

RULE = re.compile(r"-+")


def parse(text):
    """Titles, rows (lists of stripped cells) and footer lines."""
    lines = text.splitlines()
    rules = [i for i, line in enumerate(lines) if line.startswith("---")]
    spans = [match.span() for match in RULE.finditer(lines[rules[0]])]
    titles = re.split(" {2,}", lines[rules[0] + 1].strip())  # some are wider than their column
    rows = [[line[start:end].strip() for start, end in spans] for line in lines[rules[1] + 1:rules[2]]]
    return titles, rows, lines[rules[2] + 1:]
