#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's profiler table from an exported trace alone: what common/trace does, a second time and plainly.

    table_reference.py TRACE [--sort-by KEY] [--row-limit N] [--group-by-input-shape] ...
    table_reference.py --check DIR...

Prints, byte for byte, what `key_averages(...).table(...)` of torch.profiler 2.11 printed for the recording
that TRACE (Kineto/Chrome JSON, plain or gzip) was exported from. Traces of other versions are read by the
same rules. --check compares every NAME.json.gz in DIR with the NAME.CALL.txt beside it. The tests hold
readtrace against it, the benchmark measures against it. Needs Python 3.11 and nothing else.
"""
import argparse
import bisect
import gzip
import json
import math
import pathlib
import sys
from dataclasses import dataclass, field
from decimal import Decimal

DEVICE_CATEGORIES = {"kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation", "cuda_sync", "cuda_profiler_range"}
LINKED_CATEGORIES = {"kernel", "gpu_memcpy", "gpu_memset", "cuda_sync", "cuda_runtime", "cuda_driver"}
OWN_THREAD_CATEGORIES = {"cpu_op", "user_annotation", "cpu_instant_event"}
NOT_ROWS = {"python_function", "Trace"}
# Names that the categories had before 2022 or have on other devices.
CATEGORY_NAMES = {
    "Operator": "cpu_op", "Runtime": "cuda_runtime", "Kernel": "kernel", "Memcpy": "gpu_memcpy", "Memset": "gpu_memset",
    "hip_runtime": "cuda_runtime", "hip_driver": "cuda_driver", "xpu_runtime": "cuda_runtime",
    "xpu_driver": "cuda_driver", "mtia_runtime": "cuda_runtime", "mtia_ccp_events": "kernel",
}
SKIPPED_NAMES = {
    "profiler::_record_function_enter", "profiler::_record_function_enter_new", "profiler::_record_function_exit",
    "aten::is_leaf", "aten::output_nr", "aten::_version",
}
MEMORY_NAMES = {"[memory]", "[OutOfMemory]"}
COLLECTIVE_PREFIXES = ("nccl:", "gloo:", "mpi:", "ucc:", "xccl:")


# ---------------------------------------------------------------------------------------------------------------
# Reading the file
# ---------------------------------------------------------------------------------------------------------------

def nanoseconds(microseconds):
    """The exact integer number of ns that a JSON number of us stands for."""
    return int((Decimal(microseconds or 0) * 1000).to_integral_value())


@dataclass(eq=False)
class Event:
    name: str
    category: str
    start: float  # us since the start of the trace, in double as torch computes it
    end: float
    start_ns: int  # exact, since 1970
    duration_ns: int
    thread: object = None
    is_async: bool = False  # c10d's collectives, by their name, and what had not ended when the profiler stopped
    ident: int = 0  # what kernels refer to
    link: int = 0  # what this kernel or runtime call refers to
    shapes: list = field(default_factory=list)
    flops: int = 0
    cpu_bytes: int = 0
    device_bytes: int = 0
    parent: "Event | None" = None
    children: list = field(default_factory=list)
    kernels: list = field(default_factory=list)  # durations of the kernels that this op launched itself

    @property
    def on_device(self):
        return self.category in DEVICE_CATEGORIES

    @property
    def is_annotation(self):
        return self.category in ("user_annotation", "gpu_user_annotation")

    @property
    def elapsed(self):
        return self.end - self.start


@dataclass
class Trace:
    events: list
    use_device: "str | None"
    profile_memory: bool
    with_flops: bool


def load(path):
    """The file as it would be if today's PyTorch had written it."""
    raw = pathlib.Path(path).read_bytes()
    text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("utf-8", "replace")
    document = json.loads(text, parse_float=Decimal, strict=False)
    if isinstance(document, list):
        document = {"traceEvents": document}
    for record in document["traceEvents"]:
        record["cat"] = CATEGORY_NAMES.get(record.get("cat"), record.get("cat"))
        args = record.get("args")
        if not isinstance(args, dict):
            record["args"] = {}
        elif "external id" in args:
            args["External id"] = args.pop("external id")
    return document


def read(path):
    events, trace = read_events(path)
    build_tree(events)
    attribute_overhead(events)
    trace.events = remove_duplicates(events)
    return trace


def read_events(path):
    """All events with the kernels and bytes that are theirs, in the order of the table, but in no tree yet."""
    document = load(path)
    records = document["traceEvents"]
    base_ns = int(document.get("baseTimeNanoseconds", 0))
    with_flops = bool(document.get("with_flops"))
    spans = [r for r in records if r.get("cat") == "Trace"] or [r for r in records if r.get("ph") == "X"]
    trace_start = base_ns + min((nanoseconds(r["ts"]) for r in spans), default=0)
    profiler_thread = thread_of_profiler(records)

    def event(record, category):
        args = record.get("args", {})
        start = base_ns + nanoseconds(record["ts"])
        duration = nanoseconds(record.get("dur"))
        if category == "gpu_user_annotation":  # written 1 ns early and 2 ns too long
            start, duration = start + 1, duration - 2
        external = int(args.get("External id", 0))
        has_own_thread = category in OWN_THREAD_CATEGORIES or external != 0
        made = Event(
            name="ProfilerStep*" if record["name"].startswith("ProfilerStep#") else record["name"],
            category=category,
            start=(start - trace_start) / 1000,
            end=(start - trace_start + duration) / 1000,
            start_ns=start,
            duration_ns=duration,
            thread=record.get("tid") if has_own_thread else profiler_thread,
        )
        made.is_async = args.get("finished") is False or (
            category == "user_annotation" and record["name"].startswith(COLLECTIVE_PREFIXES))
        if category == "cuda_sync" and external == int(args.get("correlation", 0)):
            external = 0  # a sync of no op
        if category in LINKED_CATEGORIES:
            made.link, made.ident = external, int(args.get("correlation", 0))
        else:
            made.ident = external
            made.shapes = table_shapes(args)
            made.flops = flops(record["name"], args) if with_flops else 0
        return made

    events, memory = [], []
    for record in records:
        category = record.get("cat")
        if record.get("name") in MEMORY_NAMES:
            memory.append(record)
        elif record.get("ph") == "X" and category not in NOT_ROWS and record["name"] not in SKIPPED_NAMES:
            events.append(event(record, category))
    events.sort(key=lambda e: e.start_ns)  # as the profiler hands them over; equal ones keep the order of the file
    use_device = "CUDA" if any(e.on_device for e in events) else None
    profile_memory = bool(document.get("profile_memory") or memory)

    attribute_kernels(events)
    events += attribute_memory(events, memory, event)
    events.sort(key=lambda e: (e.start, -e.end))
    return events, Trace([], use_device, profile_memory, with_flops)


def thread_of_profiler(records):
    """The thread that stopped the profiler: torch puts runtime calls and overhead without an op on it.

    The file does not say which it was: take the one that calls step(), else the main thread (tid = pid on Linux).
    """
    own = [r for r in records if r.get("ph") == "X" and r.get("cat") in OWN_THREAD_CATEGORIES]
    steps = [r for r in own if r["name"].startswith("ProfilerStep#")]
    main = [r for r in own if r["tid"] == r["pid"]]
    likely = steps or main or own
    return likely[0]["tid"] if likely else None


def table_shapes(args):
    """A list of tensors is a list of shapes in the file and one empty shape in the table."""
    return [[] if any(isinstance(d, list) for d in dims) else dims for dims in args.get("Input Dims", [])]


def flops(name, args):
    """What torch counted while it ran, worked out from what the file says about the arguments."""
    dims, types = args.get("Input Dims", []), args.get("Input type", [])

    def is_tensor(i):
        return i < len(types) and types[i] not in ("", "Scalar", "ScalarList", "TensorList")

    if name in ("aten::mul", "aten::add"):
        return math.prod(dims[0]) if is_tensor(0) else 0
    if name in ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm"):
        first = 1 if name in ("aten::addmm", "aten::baddbmm") else 0
        if not all(is_tensor(i) for i in range(first + 2)):
            return 0
        left, right = dims[first], dims[first + 1]
        batch = left[0] if left and name in ("aten::bmm", "aten::baddbmm") else 1
        if not left or left[-1] == 0 or batch == 0:
            return 0
        return 2 * (math.prod(left) // left[-1] // batch) * math.prod(right)
    if name == "aten::conv2d" and len(dims) > 6 and is_tensor(0) and is_tensor(1):
        try:
            stride, padding, dilation, groups = (json.loads(v) for v in args["Concrete Inputs"][3:7])
            (batch, channels, *size), (out_channels, _, *kernel) = dims[0], dims[1]
            (s0, s1), (p0, p1), (d0, d1), (h, w), (k0, k1) = stride, padding, dilation, size, kernel
            out = ((h + 2 * p0 - d0 * (k0 - 1) - 1) // s0 + 1) * ((w + 2 * p1 - d1 * (k1 - 1) - 1) // s1 + 1)
            return 2 * batch * out * k0 * k1 * channels * out_channels // groups
        except (KeyError, TypeError, ValueError, ZeroDivisionError):
            return 0  # what torch does, too: not four dimensions, padding="same", a stride of 0
    return 0


# ---------------------------------------------------------------------------------------------------------------
# Events to a tree
# ---------------------------------------------------------------------------------------------------------------

def attribute_kernels(events):
    linked = {}
    for e in events:
        if e.link > 0:
            linked.setdefault(e.link, []).append(e)
    for e in events:
        if e.on_device or e.is_async or e.link != 0:
            continue
        for other in linked.get(e.ident, []):
            if other.on_device:
                e.kernels.append(other.elapsed)
            else:
                other.thread = e.thread


def attribute_memory(events, records, event):
    """Adds each [memory] record to the CPU events around it; returns the events made of those inside none."""
    instants = [event(r, "cpu_instant_event") for r in records]
    order = sorted((i for i, r in enumerate(records) if r["name"] == "[memory]"), key=lambda i: instants[i].start_ns)
    times = [instants[i].start_ns for i in order]

    def sizes(i):
        args = records[i].get("args", {})
        kind, size = int(args.get("Device Type", 0)), int(args.get("Bytes", 0))
        size = 0 if records[i]["name"] == "[OutOfMemory]" else size
        return (size if kind in (0, 2, 5) else 0, size if kind in (1, 6, 20) else 0)

    used = set()
    for e in events:
        if e.on_device:
            continue
        first = bisect.bisect_left(times, e.start_ns)
        last = bisect.bisect_right(times, e.start_ns + e.duration_ns)
        for i in order[first:last]:
            used.add(i)
            cpu, device = sizes(i)
            e.cpu_bytes += cpu
            e.device_bytes += device
    lonely = []
    for i, made in sorted(enumerate(instants), key=lambda pair: pair[1].name == "[OutOfMemory]"):  # they go last
        if i not in used:
            made.cpu_bytes, made.device_bytes = sizes(i)
            lonely.append(made)
    return lonely


def build_tree(events):
    threads = {}
    for e in events:
        if not e.on_device and not e.is_async:
            threads.setdefault(e.thread, []).append(e)
    for thread in threads.values():
        stack = []
        for e in sorted(thread, key=lambda e: (e.start, -e.end)):
            while stack and (e.start >= stack[-1].end or e.end > stack[-1].end):
                stack.pop()
            if stack:
                e.parent = stack[-1]
                e.parent.children.append(e)
            stack.append(e)


def attribute_overhead(events):
    """CUPTI's overhead has the id of the op in which it arose, so that op's kernels are its own, too."""
    for e in events:
        if e.category == "overhead":
            op = e.parent
            while op is not None and op.category != "cpu_op":
                op = op.parent
            e.kernels = list(op.kernels) if op else []


def remove_duplicates(events):
    """An only child of the same name as its parent is merged into it."""
    while True:
        kept = []
        for e in events:
            parent = e.parent
            if parent is not None and parent.name == e.name and len(parent.children) == 1:
                parent.children, parent.kernels = e.children, e.kernels
                for child in e.children:
                    child.parent = parent
            else:
                kept.append(e)
        if len(kept) == len(events):
            return kept
        events = kept


# ---------------------------------------------------------------------------------------------------------------
# The tree to averages
# ---------------------------------------------------------------------------------------------------------------

@dataclass(eq=False)
class Row:
    name: str
    on_device: bool
    is_annotation: bool
    is_async: bool
    is_top_level: bool
    input_shapes: object
    count: int = 0
    flops: int = 0
    cpu_time_total: float = 0
    self_cpu_time_total: float = 0
    device_time_total: float = 0
    self_device_time_total: float = 0
    cpu_memory_usage: int = 0
    self_cpu_memory_usage: int = 0
    device_memory_usage: int = 0
    self_device_memory_usage: int = 0

    @property
    def cpu_time(self):
        return self.cpu_time_total / self.count

    @property
    def device_time(self):
        return self.device_time_total / self.count


def total(values):
    """What sum() gives in Python 3.12 and later: it carries the rounding errors along, older ones do not."""
    result = error = 0.0
    for x in values:
        new = result + x
        error += (result - new) + x if abs(result) >= abs(x) else (x - new) + result
        result = new
    return result + error


def key_averages(trace, group_by_input_shape=False):
    device_time = {}

    def device_total(e):
        if e not in device_time:
            below = total([device_total(c) for c in e.children])
            device_time[e] = e.elapsed if e.on_device else total(e.kernels) + below
        return device_time[e]

    rows = {}
    for e in trace.events:
        key = (e.name, e.on_device, e.is_annotation, str(e.shapes) if group_by_input_shape else "")
        row = rows.get(key)
        if row is None:
            shapes = e.shapes if group_by_input_shape else ""
            row = rows[key] = Row(e.name, e.on_device, e.is_annotation, e.is_async, e.parent is None, shapes)
        row.count += 1
        row.flops += e.flops
        if e.is_async:  # total time alone
            row.cpu_time_total += e.elapsed
            row.cpu_memory_usage += e.cpu_bytes
            row.device_memory_usage += e.device_bytes
            continue
        row.device_time_total += device_total(e)
        row.self_device_time_total += device_total(e) - total([device_total(c) for c in e.children])
        if e.on_device:
            continue
        row.cpu_time_total += e.elapsed
        row.self_cpu_time_total += e.elapsed - total([c.elapsed for c in e.children])
        row.cpu_memory_usage += e.cpu_bytes
        row.device_memory_usage += e.device_bytes
        row.self_cpu_memory_usage += e.cpu_bytes - sum(c.cpu_bytes for c in e.children)
        row.self_device_memory_usage += e.device_bytes - sum(c.device_bytes for c in e.children)
    return list(rows.values())


# ---------------------------------------------------------------------------------------------------------------
# Averages to text
# ---------------------------------------------------------------------------------------------------------------

def format_time(us, unit=None):
    if unit == "s" or (unit is None and us >= 1e6):
        return f"{us / 1e6:.3f}s"
    if unit == "ms" or (unit is None and us >= 1e3):
        return f"{us / 1e3:.3f}ms"
    return f"{us:.3f}us"


def format_share(part, whole):
    return "NaN" if whole == 0 else f"{part * 100.0 / whole:.2f}%"


def format_memory(size):
    for factor, unit in ((1024**3, "GB"), (1024**2, "MB"), (1024, "KB")):
        if abs(size) >= factor:
            return f"{size / factor:.2f} {unit}"
    return f"{size} B"


def shortened(name, width):
    return name[: width - 3] + "..." if width is not None and len(name) >= width - 3 else name


def table(trace, rows, sort_by=None, row_limit=100, max_name_column_width=55, max_shapes_column_width=80,
          top_level_events_only=False, header=None, time_unit=None):
    if not rows:
        return ""
    if sort_by:
        for device in ("cuda", "xpu", "privateuse1"):
            sort_by = sort_by.replace(device, "device")
        rows = sorted(rows, key=lambda r: getattr(r, sort_by), reverse=True)

    has_device_time = any(r.self_device_time_total > 0 for r in rows)
    has_device_memory = bool(trace.use_device) and any(r.self_device_memory_usage > 0 for r in rows)
    has_shapes = any(len(r.input_shapes) > 0 for r in rows)
    positive_flops = [r.flops for r in rows if r.flops > 0] if trace.with_flops else []
    cpu_sum = device_sum = 0
    for r in rows:
        cpu_sum += r.self_cpu_time_total
        if r.on_device and not r.is_annotation:
            device_sum += r.self_device_time_total

    def width_of(longest, limit):
        return longest + 4 if limit is None else min(longest + 4, limit)

    name_width = width_of(max(len(r.name) for r in rows), max_name_column_width)
    shapes_width = width_of(max(len(str(r.input_shapes)) for r in rows), max_shapes_column_width)

    def time(us):
        return format_time(us, time_unit)

    columns = [
        ("Name", name_width, lambda r: shortened(r.name, max_name_column_width)),
        ("Self CPU %", 12, lambda r: format_share(r.self_cpu_time_total, cpu_sum)),
        ("Self CPU", 12, lambda r: time(r.self_cpu_time_total)),
        ("CPU total %", 12, lambda r: "0" if r.is_async else format_share(r.cpu_time_total, cpu_sum)),
        ("CPU total", 12, lambda r: time(r.cpu_time_total)),
        ("CPU time avg", 12, lambda r: time(r.cpu_time)),
    ]
    device = trace.use_device
    if has_device_time:
        columns += [
            (f"Self {device}", 12, lambda r: time(r.self_device_time_total)),
            (f"Self {device} %", 12, lambda r: format_share(r.self_device_time_total, device_sum)),
            (f"{device} total", 12, lambda r: time(r.device_time_total)),
            (f"{device} time avg", 12, lambda r: time(r.device_time)),
        ]
    if trace.profile_memory:
        columns += [
            ("CPU Mem", 12, lambda r: format_memory(r.cpu_memory_usage)),
            ("Self CPU Mem", 12, lambda r: format_memory(r.self_cpu_memory_usage)),
        ]
        if has_device_memory:
            columns += [
                (f"{device} Mem", 12, lambda r: format_memory(r.device_memory_usage)),
                (f"Self {device} Mem", 12, lambda r: format_memory(r.self_device_memory_usage)),
            ]
    columns.append(("# of Calls", 12, lambda r: str(r.count)))
    if has_shapes:
        columns.append(("Input Shapes", shapes_width, lambda r: str(r.input_shapes)[:shapes_width]))
    if positive_flops:
        step = math.floor(max(0, min(math.log10(min(positive_flops)) / 3, 5)))
        scale = pow(10, step * -3.0)
        unit = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")[step]
        columns.append((f"Total {unit}", 12, lambda r: f"{r.flops * scale:8.3f}" if r.flops > 0 else "--"))

    def line(cells):
        return "".join(cell.rjust(width) + "  " for cell, (_, width, _) in zip(cells, columns))

    rule = line(["-" * width for _, width, _ in columns])
    double_rule = "=" * (len(rule) - 2)
    lines = []
    if header is not None:
        lines += [double_rule, header]
    if top_level_events_only:
        lines += [double_rule, "This report only display top-level ops statistics"]
    lines += [rule, line([title for title, _, _ in columns]), rule]
    shown = [r for r in rows if r.is_top_level or not top_level_events_only]
    if row_limit >= 0:
        shown = shown[:row_limit]
    lines += [line([cell(r) for _, _, cell in columns]) for r in shown]
    lines += [rule, f"Self CPU time total: {time(cpu_sum)}"]
    if has_device_time:
        lines.append(f"Self {device} time total: {time(device_sum)}")
    return "\n".join(lines) + "\n"


# ---------------------------------------------------------------------------------------------------------------
# Commands
# ---------------------------------------------------------------------------------------------------------------

def call_arguments(name, call):
    """The arguments of key_averages() and of table() that each recorded table was printed with."""
    cpu = name.startswith("cpu_")
    if call in ("cuda_time_total", "cpu_time_total"):
        return {}, {"sort_by": call, "row_limit": 15}
    if call == "self_cpu":
        return {}, {"sort_by": "self_cpu_time_total", "row_limit": 100}
    if call == "default":
        return {}, {}
    if call == "shapes":
        key = "cpu_time_total" if cpu else "cuda_time_total"
        return {"group_by_input_shape": True}, {"sort_by": key, "row_limit": 50}
    if call == "mem":
        if cpu:
            return {}, {"sort_by": "self_cpu_memory_usage", "row_limit": 20}
        return {}, {"sort_by": "self_cuda_memory_usage", "row_limit": 20, "max_name_column_width": 25}
    if call == "top":
        return {}, {"sort_by": "count", "row_limit": 10, "top_level_events_only": True}
    raise SystemExit(f"unknown call {call}")


def check(folders):
    same = pairs = 0
    for folder in map(pathlib.Path, folders):
        for path in sorted(folder.glob("*.json.gz")):
            name = path.name.removesuffix(".json.gz")
            trace = read(path)
            for expected in sorted(folder.glob(f"{name}.*.txt")):
                call = expected.name.removeprefix(name + ".").removesuffix(".txt")
                averages, arguments = call_arguments(name, call)
                got = table(trace, key_averages(trace, **averages), **arguments)
                want = expected.read_bytes().decode()
                pairs += 1
                if got == want:
                    same += 1
                    continue
                print(f"differs: {name} {call}")
                got_lines, want_lines = got.split("\n"), want.split("\n")
                for number in range(max(len(got_lines), len(want_lines))):
                    g = got_lines[number] if number < len(got_lines) else None
                    w = want_lines[number] if number < len(want_lines) else None
                    if g != w:
                        print(f"  line {number + 1}\n  want {w!r}\n  got  {g!r}")
                        break
    print(f"identical {same} of {pairs}")
    return 0 if pairs and same == pairs else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", nargs="*")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--sort-by")
    parser.add_argument("--row-limit", type=int, default=100)
    parser.add_argument("--group-by-input-shape", action="store_true")
    parser.add_argument("--max-name-column-width", type=int, default=55)
    parser.add_argument("--max-shapes-column-width", type=int, default=80)
    parser.add_argument("--top-level-events-only", action="store_true")
    parser.add_argument("--header")
    parser.add_argument("--time-unit", choices=("s", "ms", "us"))
    args = parser.parse_args()
    if args.check:
        return check(args.trace)
    for path in args.trace:
        trace = read(path)
        rows = key_averages(trace, args.group_by_input_shape)
        sys.stdout.write(table(
            trace, rows, args.sort_by, args.row_limit, args.max_name_column_width, args.max_shapes_column_width,
            args.top_level_events_only, args.header, args.time_unit))
    return 0


if __name__ == "__main__":
    sys.exit(main())
