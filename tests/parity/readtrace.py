# SPDX-License-Identifier: Apache-2.0
"""How the parity tests call readtrace, and how they compare."""
import subprocess

SKIPPED = 4  # the exit code by which CTest knows a skipped test


def table(program, path, averages, arguments):
    """What `readtrace table` prints for key_averages(**averages).table(**arguments)."""
    command = [program, "table", str(path)]
    for name, value in {**averages, **arguments}.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            command.append(option)
        elif name.startswith("max_") and value is None:
            command += [option, "none"]
        elif value is not None and value is not False:
            command += [option, str(value)]
    result = subprocess.run(command, capture_output=True)
    if result.returncode != 0:
        return f"exit code {result.returncode}: {result.stderr.decode()}"
    return result.stdout.decode()


class Comparison:
    """Counts texts and prints where the first few of those that differ do so."""

    def __init__(self):
        self.texts = self.different = 0

    def add(self, what, want, got):
        self.texts += 1
        if want == got:
            return
        self.different += 1
        if self.different > 5:
            return
        print(f"differs: {what}")
        want_lines, got_lines = want.split("\n"), got.split("\n")
        for number in range(max(len(want_lines), len(got_lines))):
            w = want_lines[number] if number < len(want_lines) else "(no such line)"
            g = got_lines[number] if number < len(got_lines) else "(no such line)"
            if w != g:
                print(f"  line {number + 1}\n  want {w}\n  got  {g}")
                break

    def exit_code(self):
        print(f"identical {self.texts - self.different} of {self.texts} tables")
        if self.texts == 0:
            print("nothing was compared: that is no result")
        return 0 if self.texts > 0 and self.different == 0 else 1
